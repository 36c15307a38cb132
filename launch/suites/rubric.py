"""Judging and credit within the training loop."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from ml_collections import ConfigDict

from launch.command import console
from launch.suites import Row
from launch.warmstart import start_policy
from trca_jax.learner.display import Display
from trca_jax.learner.loop import Trainer
from trca_jax.policy.sharding import make_mesh
from trca_jax.rollout.world import World


def rubric(config: ConfigDict, quick: bool) -> list[Row]:
    """Judging (adapter, encoding, operators) and credit within the training loop, whole iterations after the first."""
    config.iterations, config.checkpoint.every = (3, 3) if quick else (5, 5)
    if quick:
        config.tasks, config.group_size = 4, 4
    config.env.games = config.tasks
    rollouts = config.tasks * config.group_size
    with World(config.env, slots=rollouts) as world, TemporaryDirectory() as folder:
        tasks = world.tasks("train", config.env.games, lambda done, of: None)
        policy = start_policy(config, world, tasks, Path(folder), console.print, mesh := make_mesh())
        trainer = Trainer(config, world, policy, tasks.tasks, Path(folder), mesh=mesh)
        with Display(config.iterations, [f"{config.iterations} iterations of {rollouts} rollouts"]) as display:
            trainer.run(display)
        trainer.close()
        records = [record for record in trainer.log.records if record["iteration"] > 0]  # the first one compiles
    seconds = [record["seconds"] for record in records]
    played = [record["steps"] * (rollouts - record["failures"]) for record in records]
    rates = [n / s["judge"] for n, s in zip(played, seconds, strict=True)]
    shares = [(s["judge"] + s["credit"]) / s["total"] for s in seconds]
    return [
        Row("transitions_per_s", median(rates), "transitions/s"),
        Row("iteration_share", median(shares), "of an iteration"),
        Row("iteration_s", median(s["total"] for s in seconds), "s"),
    ]

"""Trains a policy and shows what it has learned.

python launch/train.py --config=configs/alfworld.py [--config.method=grpo] [--config.workdir=runs/mine] ...
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict

from launch.command import read_config, run, speaker
from launch.evaluation import Evaluator
from launch.warmstart import start_policy
from trca_jax.agents.chat import Chat
from trca_jax.credit import METHODS
from trca_jax.evaluation.report import learning_curve
from trca_jax.learner.display import Display
from trca_jax.learner.interrupts import Stopped
from trca_jax.learner.loop import Trainer
from trca_jax.learner.metrics import funnel
from trca_jax.policy.sharding import make_mesh
from trca_jax.rollout.processes import leads, share
from trca_jax.rollout.score import StepScorer
from trca_jax.rollout.world import World


def main() -> int:
    config = read_config()
    if config.agent.endpoint:
        raise ValueError("a model behind config.agent.endpoint cannot be trained; launch/evaluate.py plays it")
    names = dict.fromkeys((config.env.name, config.get("baseline"), config.method, str(config.seed)))
    folder = Path(config.workdir or f"runs/{'-'.join(filter(None, names))}")
    with World(config.env, slots=len(share(config.tasks * config.group_size))) as world:
        return train(config, folder, world)


def step_scorer(config: ConfigDict, folder: Path) -> StepScorer | None:
    """The model of config.judge, for a method that reads step scores; its answers are kept in the folder."""
    if "step_score" not in METHODS[config.method].needs:
        return None
    return StepScorer(Chat(config.judge.endpoint, config.judge.model, cache=folder / "scores", **config.chat))


def train(config: ConfigDict, folder: Path, world: World) -> int:
    """One run, continued if the folder holds it already; 0 if it ended, 130 if the user stopped it."""
    display = Display(
        config.iterations, [f"{config.env.name} · {config.method} · {folder}"], funnel(world.judge), speaker()
    )
    with display:
        preparing = lambda done, of: display.phase(f"preparing games {done}/{of}")  # noqa: E731
        tasks = world.tasks("train", config.env.games, preparing)
        evaluator = Evaluator(config, world, preparing)
        mesh = make_mesh(config.mesh)
        policy = start_policy(config, world, tasks, folder, display.message, mesh)
        games = {
            "training": {"tasks": len(tasks), "source": tasks.source, "sha256": tasks.sha256},
            "evaluation": evaluator.facts(),
        }
        size = sum(np.size(x) for x in jax.tree.leaves(policy.params))
        trainer = Trainer(config, world, policy, tasks.tasks, folder, games, mesh, step_scorer(config, folder))
        del policy  # the trainer has its own copy of the weights
        display.message(f"train     {tasks}")
        display.message(f"held out  {evaluator.tasks}")
        display.message(
            f"policy    {config.agent.model}, {size / 1e6:.2f} M parameters, decode {config.agent.decode}, "
            f"rubric {world.benchmark.library.fingerprint[:12]}, seed {config.seed}"
        )
        if trainer.iteration:
            display.message(f"continuing after iteration {trainer.iteration}")

        def evaluate(iteration: int, check: Callable[[], None]) -> None:
            evaluations = [r for r in trainer.log.records if r["kind"] == "eval" and r["iteration"] == iteration]
            if not any(map(evaluator.made, evaluations)):
                with jax.set_mesh(trainer.replica.mesh):
                    params = trainer.sampling_params()
                    record = evaluator.run(trainer.collector, params, folder, iteration, display, check)
                trainer.log.write(record)

        try:
            trainer.run(display, evaluate)
        except Stopped:
            display.message(f"Stopped after {trainer.iteration} iterations, all saved; run the same command to go on.")
            return 130
        finally:
            trainer.close()
    if not leads():
        return 0
    evaluator.show(folder, trainer.iteration)
    records = trainer.log.records
    curve = {config.method: [r for r in records if r["kind"] == "train"]}
    points = {config.method: [r for r in records if r["kind"] == "eval"]}
    learning_curve(folder / "learning_curve.png", curve, points, funnel(world.judge))
    print(f"Learning curve: {folder / 'learning_curve.png'}   metrics: {folder / 'metrics.jsonl'}")
    return 0


if __name__ == "__main__":
    run(main)

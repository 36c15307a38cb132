"""The held-out evaluation that commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ml_collections import ConfigDict

from launch.command import console
from trca_jax.evaluation.evaluate import evaluate
from trca_jax.evaluation.report import evaluation_table, wilson
from trca_jax.learner.display import Display
from trca_jax.learner.record import write_json
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.world import World


class Evaluator:
    """Plays config.eval.games tasks of config.eval.split, each config.eval.repeats times.

    tasks: those tasks. The answers are sampled at the temperature of training, so that nothing is compiled twice.
    """

    def __init__(self, config: ConfigDict, world: World, preparing: Callable[[int, int], None]):
        self._config, self._world = config, world
        self.tasks = world.tasks(config.eval.split, config.eval.games, preparing)

    def facts(self) -> dict:
        """For the record of the run."""
        t = self.tasks
        return {"split": t.split, "tasks": len(t), "source": t.source, "sha256": t.sha256}

    def run(self, collector: Collector, params, folder: Path, iteration: int, display: Display) -> dict:
        """Evaluates, writes `evaluation-<iteration>.json` (every episode) and returns the record for the metrics."""
        c = self._config
        episodes = evaluate(
            collector, params, self.tasks.tasks, slots=self._world.pool.slots, repeats=c.eval.repeats, seed=c.seed,
            progress=lambda done, of: display.phase(f"evaluation {done}/{of}"),
        )  # fmt: skip
        played = [e for e in episodes if not e["failure"]]
        won = sum(e["won"] for e in played)
        low, high = wilson(won, len(played))
        record = {
            "kind": "eval", "iteration": iteration, "rollouts": iteration * c.tasks * c.group_size,
            "success": won / max(len(played), 1), "low": low, "high": high, "episodes": len(played),
            "failures": len(episodes) - len(played), "split": c.eval.split, "decode": c.agent.decode,
        }  # fmt: skip
        write_json(folder / f"evaluation-{iteration}.json", {**record, "results": episodes})
        display.message(
            f"held out after {iteration} iterations: success {record['success']:.1%} "
            f"[{low:.1%}, {high:.1%}] of {len(played)} episodes"
        )
        return record

    def show(self, folder: Path, iteration: int) -> None:
        """Prints the table of an evaluation that was run."""
        found = json.loads((folder / f"evaluation-{iteration}.json").read_text())
        console.print(evaluation_table(found["results"]))

"""The held-out evaluation that commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from ml_collections import ConfigDict

from launch.command import console
from trca_jax.evaluation.evaluate import evaluate
from trca_jax.evaluation.report import evaluation_table, macro, summary, wilson
from trca_jax.learner.display import Display
from trca_jax.learner.record import write_json
from trca_jax.policy.decoding import Decoding
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.processes import gather, leads
from trca_jax.rollout.store import decode, encode, write_episodes
from trca_jax.rollout.trials import Player, Trials
from trca_jax.rollout.world import World


class Evaluator:
    """Plays config.eval.games tasks of config.eval.split, each config.eval.repeats times.

    tasks: those tasks. name: its files are `<name>-<iteration>.json` with the results and `.npz` with the episodes, in
    the same order (an episode's group numbers its task). cut_short counts those that had steps left but no room.
    Answers are drawn as config.eval says; unless it sets anything they are drawn as in training, so that nothing is
    compiled twice. With config.eval.trials above 1 a task that failed is tried again (Reflexion), and an episode is
    that of the last trial.
    Raises ValueError for a way to draw them that there is not.
    """

    def __init__(
        self, config: ConfigDict, world: World, preparing: Callable[[int, int], None], name: str = "evaluation"
    ):
        self._config, self._world, self._name = config, world, name
        e = config.eval
        temperature = config.ppo.temperature if e.temperature is None else e.temperature
        self._decoding = Decoding(temperature, e.top_p, e.top_k)
        self.tasks = world.tasks(config.eval.split, config.eval.games, preparing)

    def facts(self) -> dict:
        """For the record of the run."""
        t = self.tasks
        return {"split": t.split, "tasks": len(t), "source": t.source, "sha256": t.sha256, "world": dict(t.facts)}

    def run(
        self, player: Player, params, folder: Path, iteration: int, display: Display,
        check: Callable[[], None] = lambda: None, more: Callable[[], Mapping] = dict,
    ) -> dict:  # fmt: skip
        """Evaluates, writes its files and returns the record for the metrics.
        check: is called in every turn, and may raise. more: what else its file holds, asked at the end."""
        c = self._config
        player = Trials(player, c.eval.trials, self._world.benchmark.role) if c.eval.trials > 1 else player
        all_played: list[Episode] = []

        def play(*arguments, **more) -> list[Episode]:
            own = player(*arguments, decoding=self._decoding, **more)
            all_played.extend(episode for part in gather(encode(own)) for episode in decode(part))
            return own

        def on_turn(turn: int, live: int) -> None:
            check()
            display.turn(turn, live)

        episodes = evaluate(
            play, params, self.tasks.tasks,
            slots=self._world.pool.slots, repeats=c.eval.repeats, seed=c.seed,
            progress=lambda done, of: display.phase(f"evaluation {done}/{of}"), on_turn=on_turn,
        )  # fmt: skip
        played = [e for e in episodes if not e["failure"]]
        won = sum(e["won"] for e in played)
        low, high = wilson(won, len(played))
        record = {
            "kind": "eval", "iteration": iteration, "rollouts": iteration * c.tasks * c.group_size,
            "success": won / max(len(played), 1), "low": low, "high": high, "episodes": len(played),
            "score": sum(e["score"] for e in played) / max(len(played), 1),
            "failures": len(episodes) - len(played), "split": c.eval.split, "prompt": c.agent.prompt,
            "trials": c.eval.trials, "decode": c.agent.decode,
            **asdict(self._decoding),
        }  # fmt: skip
        if leads():
            number = {task.id: group for group, task in enumerate(self.tasks)}
            for episode in all_played:
                episode.group = number[episode.task.id]
            write_episodes(self._file(folder, iteration).with_suffix(".npz"), all_played)
            tries = range(1, c.eval.trials + 1)
            by_trial = [sum(e["won"] for e in played if e["trials"] <= n) / max(len(played), 1) for n in tries]
            rows = summary(episodes)
            cut_short = sum(e.truncated and len(e.steps) < c.env.max_steps for e in all_played)
            content = {
                **record, "success_by_trial": by_trial, "model": c.agent.model, "data": self.facts(),
                "kinds": [{name: _known(value) for name, value in row.items()} for row in rows],
                "success_macro": _known(macro(rows)), "cut_short": cut_short, **more(), "results": episodes,
            }  # fmt: skip
            write_json(self._file(folder, iteration), content)
            if cut_short:
                display.message(
                    f"{cut_short} of {len(all_played)} episodes ended early: no room for an observation and an answer; "
                    "enlarge agent.buckets, or take a model with a longer context"
                )
        graded = "" if record["score"] == record["success"] else f", score {record['score']:.1%},"
        display.message(
            f"held out after {iteration} iterations: success {record['success']:.1%} "
            f"[{low:.1%}, {high:.1%}]{graded} of {len(played)} episodes"
        )
        return record

    def made(self, record: Mapping) -> bool:
        """Whether this is the record of such an evaluation: as many episodes of the same split."""
        size = len(self.tasks) * self._config.eval.repeats
        return record["split"] == self._config.eval.split and record["episodes"] + record["failures"] == size

    def show(self, folder: Path, iteration: int) -> None:
        """Prints the table of an evaluation that was run."""
        found = json.loads(self._file(folder, iteration).read_text())
        console.print(evaluation_table(found["results"]))

    def _file(self, folder: Path, iteration: int) -> Path:
        return folder / f"{self._name}-{iteration}.json"


def _known(value):
    """The value, or None for the NaN that JSON does not know."""
    return None if isinstance(value, float) and math.isnan(value) else value

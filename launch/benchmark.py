"""Measures one part of the library: a table, and the same as one JSON object in the last line.

python launch/benchmark.py SUITE [--quick] [--data=SOURCE]

A suite is a function of the table SUITES. A row's ratio says how many times better the value is than the reference.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from absl import flags
from ml_collections import ConfigDict
from rich.table import Table

from configs.alfworld import get_config
from launch.command import console, parse_flags, run
from launch.warmstart import start_policy
from trca_jax.envs.alfworld.engine import AlfworldEnv, load_game
from trca_jax.envs.alfworld.games import Game, load_games
from trca_jax.envs.base import Env, Observation, Task
from trca_jax.learner.display import Display
from trca_jax.learner.loop import Trainer
from trca_jax.rollout.world import World

_QUICK = flags.DEFINE_boolean("quick", False, "Fewer games and repeats: seconds instead of minutes.")
_DATA = flags.DEFINE_string("data", "generated", "Where the games come from, as in --config.env.data.")


@dataclass(frozen=True)
class Row:
    """One figure; reference and ratio are None where there is nothing to compare with."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    ratio: float | None = None


def compare(name: str, unit: str, pairs: list[tuple[float, float]], *, more_is_better: bool) -> Row:
    """A row of the medians of (ours, reference), measured in turn."""
    value, reference = (median(side) for side in zip(*pairs, strict=True))
    return Row(name, value, unit, reference, value / reference if more_is_better else reference / value)


def envs(config: ConfigDict, quick: bool) -> list[Row]:
    """The cached engine beside TextWorld's own: the same commands in the same games, one in ten of them invalid.

    Seconds are CPU time, so that other work on the machine changes little. Raises ValueError if the engines differ.
    """
    games, rollouts, steps = (3, 1, 25) if quick else (8, 2, 25)
    loads, first_loads, resets, rates = [], [], [], []
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, TRCA_CACHE=folder, ALFWORLD_DATA=folder):
        warmup, *tasks = load_games(config.env.data, "train", count=games + 1).tasks
        cached, stock = AlfworldEnv(), _StockEngine()
        cached.reset(warmup)
        gc.freeze()  # what is loaded now, JAX above all, would be searched for garbage at the stock engine's cost
        for task in tasks:
            anew, stock_load = _seconds(load_game, task.payload), _seconds(stock.load, task.payload)
            load_game.cache_clear()
            loads.append((_seconds(load_game, task.payload)[0] * 1e3, stock_load[0] * 1e3))
            first_loads.append((anew[0] * 1e3, stock_load[0] * 1e3))
            for rollout in range(rollouts):
                ours, reference = (_play(env, task, steps, f"{task.id} {rollout}") for env in (cached, stock))
                if ours[2] != reference[2]:
                    raise ValueError(f"the engines answer differently in {task.id}; expected equal play to compare")
                resets.append((ours[0] * 1e3, reference[0] * 1e3))
                rates.append((steps / ours[1], steps / reference[1]))
    return [
        compare("alfworld_steps_per_s", "steps/s", rates, more_is_better=True),
        compare("alfworld_reset_ms", "ms", resets, more_is_better=False),
        compare("alfworld_load_ms", "ms", loads, more_is_better=False),
        compare("alfworld_first_load_ms", "ms", first_loads, more_is_better=False),
    ]


class _StockEngine:
    """TextWorld's PddlEnv with ALFWorld's names, as ALFWorld plays, behind the protocol `Env`."""

    def __init__(self) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv

        self._env = AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)))

    def load(self, game: Game) -> None:
        grammar = game.grammar.replace(Game.PLACEHOLDER, game.goal)
        self._env.load({"pddl_domain": game.domain, "grammar": grammar, "pddl_problem": game.problem_text()})

    def reset(self, task: Task) -> Observation:
        """Starts the loaded game anew."""
        return self._seen(self._env.reset())

    def step(self, action: str) -> Observation:
        return self._seen(self._env.step(action)[0])

    def _seen(self, state) -> Observation:
        return Observation(state.feedback, tuple(state.admissible_commands), won=state["won"])


def _seconds(call: Callable, *arguments: Any) -> tuple[float, Any]:
    """CPU seconds of this thread, and the result."""
    start = time.thread_time()
    result = call(*arguments)
    return time.thread_time() - start, result


def _play(env: Env, task: Task, steps: int, seed: str) -> tuple[float, float, list[tuple]]:
    """Seconds of the reset, seconds of all steps, and what was observed; equal engines are given equal commands."""
    rng, plan = random.Random(seed), list(task.payload.walkthrough)
    resetting, seen = _seconds(env.reset, task)
    stepping, observed = 0.0, []
    for _ in range(steps):
        draw = rng.random()
        if draw < 0.1:
            command = rng.choice(("", "dance", "go to nowhere 1"))
        elif draw < 0.5 and plan:
            command = plan.pop(0)
        else:
            command = rng.choice(seen.admissible)
        spent, seen = _seconds(env.step, command)
        stepping += spent
        observed.append((command, seen.text, seen.won))
    return resetting, stepping, observed


def rubric(config: ConfigDict, quick: bool) -> list[Row]:
    """Judging (adapter, encoding, operators) and credit within the training loop, whole iterations after the first."""
    config.iterations, config.checkpoint.every = (3, 3) if quick else (5, 5)
    if quick:
        config.tasks, config.group_size = 4, 4
    config.env.games = config.tasks
    rollouts = config.tasks * config.group_size
    with World(config.env, slots=rollouts) as world, TemporaryDirectory() as folder:
        tasks = world.tasks("train", config.env.games, lambda done, of: None)
        policy = start_policy(config, world, tasks, Path(folder), console.print)
        trainer = Trainer(config, world, policy, tasks.tasks, Path(folder))
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


SUITES: dict[str, Callable[[ConfigDict, bool], list[Row]]] = {"envs": envs, "rubric": rubric}


def main() -> int:
    names = parse_flags(plain=True)
    if len(names) != 1 or names[0] not in SUITES:
        raise ValueError(f"benchmark suite {' '.join(names)!r} is unknown, expected one of {', '.join(SUITES)}")
    config = get_config()
    config.env.data = _DATA.value
    rows = SUITES[names[0]](config, _QUICK.value)
    table = Table("name", title=f"{names[0]}, games: {_DATA.value}")
    for name in ("value", "unit", "reference", "ratio"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    for row in rows:
        table.add_row(row.name, _figure(row.value), row.unit, _figure(row.reference), _figure(row.ratio))
    console.print(table)
    print(json.dumps({"suite": names[0], "rows": [asdict(row) for row in rows]}), flush=True)
    return 0


def _figure(value: float | None) -> str:
    return "" if value is None else format(value, ",.0f" if abs(value) >= 1000 else ".4g")


if __name__ == "__main__":
    run(main)

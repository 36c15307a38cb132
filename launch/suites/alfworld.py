"""The cached engine beside TextWorld's own."""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from launch.suites import Row, compare
from trca_jax.envs.alfworld.engine import AlfworldEnv, load_game
from trca_jax.envs.alfworld.games import Game, load_games
from trca_jax.envs.base import Env, Observation, Task

# Its grammar evaluates expressions over locals() that Python 3.13 no longer fills (PEP 667); ours never evaluates.
WHY_BROKEN = "TextWorld's own engine does not run under Python 3.13" if sys.version_info >= (3, 13) else ""


def alfworld(source: str, quick: bool) -> list[Row]:
    """The cached engine beside TextWorld's own: the same commands in the same games, one in ten of them invalid.

    source: of the games. Seconds are CPU time, so that other work on the machine changes little. Raises ValueError if
    the engines differ, and where TextWorld's own does not run.
    """
    if WHY_BROKEN:
        raise ValueError(f"{WHY_BROKEN}; use Python 3.11 or 3.12 to compare")
    games, rollouts, steps = (3, 1, 25) if quick else (8, 2, 25)
    loads, first_loads, resets, rates = [], [], [], []
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, TRCA_CACHE=folder, ALFWORLD_DATA=folder):
        warmup, *tasks = load_games(source, "train", count=games + 1).tasks
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

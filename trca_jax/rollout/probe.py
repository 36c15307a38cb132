"""Sample transitions of a benchmark: scripted play that also errs, so that everything a rubric may judge occurs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from trca_jax.envs.base import Benchmark, Task
from trca_jax.rollout.episode import Episode, Step

_PLAN = 0.8  # share of moves that follow the plan, until it is lost
_ERRORS = 0.1  # share of steps without an action, and of steps with a command that there is not


def probe(benchmark: Benchmark, tasks: Sequence[Task], max_steps: int, seed: int) -> list[Episode]:
    """One episode a task, without tokens, played in this process; equal for equal seed and tasks.

    The player follows its plan until some step, and then takes any kind of command (by its first word) as often as any
    other: so both what leads to a success and what undoes progress can be seen.
    """
    env, blank = benchmark.make_env(), np.zeros(0, np.int32)
    episodes = []
    for number, task in enumerate(tasks):
        rng = Random(f"{seed}/{number}")
        seen = env.reset(task)
        adapter = benchmark.adapter(task, seen.text)
        player = benchmark.demonstrator(adapter, rng, _PLAN)
        lost = rng.randint(1, max_steps)
        episode = Episode(task, number, "append", seen.text)
        while not seen.done and len(episode.steps) < max_steps:
            draw = rng.random()
            if draw < 2 * _ERRORS:
                action = None if draw < _ERRORS else "dance"
            else:
                action = player.act(seen.admissible) if len(episode.steps) < lost else _any(rng, seen.admissible)
            step = Step(blank, blank, blank, None, action, (0, 0), seen.text, seen.admissible)
            seen = env.step(action or "")
            step.after, step.reward = seen.text, seen.reward
            adapter.transition(action, seen.text, step.admissible)
            episode.steps.append(step)
        episode.won, episode.truncated = seen.won, not seen.done
        episodes.append(episode)
    return episodes


def _any(rng: Random, admissible: Sequence[str]) -> str:
    """A command of a kind that is drawn first."""
    kinds: dict[str, list[str]] = {}
    for command in admissible:
        kinds.setdefault(command.partition(" ")[0], []).append(command)
    return rng.choice(kinds[rng.choice(sorted(kinds))])

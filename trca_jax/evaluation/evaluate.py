"""Evaluation: every task of a split exactly `repeats` times, in sorted order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from trca_jax.envs.base import Task
from trca_jax.rollout.collect import Collector


def evaluate(
    collector: Collector, params, tasks: Sequence[Task], *, slots: int, repeats: int, seed: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
    on_turn: Callable[[int, int], None] = lambda turn, live: None,
) -> list[dict]:  # fmt: skip
    """One record an episode: task, kind, repeat, won, steps, failure. Success is `won` alone.

    A task's record depends on the parameters, the seed, its place in the list and the slots alone.
    progress(done, of): episodes. on_turn(turn, live): within them, as the collector calls it.
    """
    jobs = [(task, repeat) for task in tasks for repeat in range(repeats)]
    records = []
    for first in range(0, len(jobs), slots):
        progress(first, len(jobs))
        part = jobs[first : first + slots]
        key = jax.random.fold_in(jax.random.key(seed), first)
        episodes = collector(params, [task for task, _ in part], range(len(part)), key, on_turn)
        records += [
            {"task": t.id, "kind": t.kind, "repeat": n, "won": e.won, "steps": len(e.steps), "failure": e.failure}
            for (t, n), e in zip(part, episodes, strict=True)
        ]
    return records

"""Evaluation: every task of a split exactly `repeats` times, in sorted order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax

from trca_jax.envs.base import Task
from trca_jax.rollout.collect import Collector


def evaluate(
    collector: Collector, params, tasks: Sequence[Task], *, slots: int, repeats: int, seed: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[dict]:  # fmt: skip
    """One record an episode: task, kind, repeat, won, steps, failure. Success is `won` alone.

    A task's record depends on the parameters, the seed and its place in the list alone. progress(done, of): episodes.
    """
    jobs = [(task, repeat) for task in tasks for repeat in range(repeats)]
    records = []
    for first in range(0, len(jobs), slots):
        part = jobs[first : first + slots]
        key = jax.random.fold_in(jax.random.key(seed), first)
        episodes = collector(params, [task for task, _ in part], range(len(part)), key)
        records += [
            {"task": t.id, "kind": t.kind, "repeat": n, "won": e.won, "steps": len(e.steps), "failure": e.failure}
            for (t, n), e in zip(part, episodes, strict=True)
        ]
        progress(len(records), len(jobs))
    return records

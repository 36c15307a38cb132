"""Evaluation: every task of a split exactly `repeats` times, in sorted order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import chain

import jax

from trca_jax.envs.base import Task
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.processes import gather


def evaluate(
    collector: Collector, params, tasks: Sequence[Task], *, slots: int, repeats: int, seed: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
    on_turn: Callable[[int, int], None] = lambda turn, live: None,
) -> list[dict]:  # fmt: skip
    """One record an episode: task, kind, repeat, won, score, steps, trials, failure. Success is `won` alone.

    slots: episodes that this process plays at once; every process plays its share and knows all records. A task's
    record depends on the parameters, the seed, its place in the list and the slots of all processes alone.
    progress(done, of): episodes. on_turn(turn, live): within them, as the collector calls it.
    """
    jobs = [(task, repeat) for task in tasks for repeat in range(repeats)]
    records = []
    at_once, mine = slots * jax.process_count(), slots * jax.process_index()
    for first in range(0, len(jobs), at_once):
        progress(first, len(jobs))
        own = [task for task, _ in jobs[first : first + at_once][mine : mine + slots]]
        key = jax.random.fold_in(jax.random.key(seed), first)
        episodes = collector(params, own, range(len(own)), key, on_turn, first=mine)
        results = [
            {"won": e.won, "score": e.score, "steps": len(e.steps), "trials": e.trials, "failure": e.failure}
            for e in episodes
        ]
        parts = map(json.loads, gather(json.dumps(results).encode()))
        for result, (task, repeat) in zip(chain.from_iterable(parts), jobs[first : first + at_once], strict=True):
            records.append({"task": task.id, "kind": task.kind, "repeat": repeat, **result})
    return records

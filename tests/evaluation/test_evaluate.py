"""Evaluation with a made-up collector: which tasks are played, with which keys, and what is recorded."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from trca_jax.envs.base import Task
from trca_jax.evaluation.evaluate import evaluate
from trca_jax.evaluation.report import summary

TASKS = [Task(f"task {n}", "made up", "", "even" if n % 2 == 0 else "odd", None) for n in range(5)]


class Collector:
    """Wins by a coin that the parameters, the key and the row decide; every third episode of the run fails."""

    def __init__(self):
        self.calls = []
        self.failing = iter(range(1, 1000))

    def __call__(self, params, tasks, groups, key, on_turn, first):
        self.calls.append((list(tasks), list(groups)))
        on_turn(1, len(tasks))
        coins = jax.random.bernoulli(jax.random.fold_in(key, params), 0.5, (len(tasks),))
        episodes = []
        for coin in coins:
            failure = "worker died" if next(self.failing) % 3 == 0 else None
            # A score without a win is no success.
            steps = [0] * (3 + int(coin))
            episodes.append(SimpleNamespace(won=bool(coin), steps=steps, failure=failure, score=1.0, trials=1))
        return episodes


def play(params=0, seed=0, slots=4, repeats=2):
    collector, seen = Collector(), []
    records = evaluate(
        collector, params, TASKS, slots=slots, repeats=repeats, seed=seed,
        progress=lambda done, of: seen.append((done, of)), on_turn=lambda turn, live: seen.append(live),
    )  # fmt: skip
    return records, collector, seen


def test_every_task_is_played_as_often_as_asked_in_order():
    records, collector, seen = play()
    assert [(r["task"], r["repeat"]) for r in records] == [(f"task {n}", k) for n in range(5) for k in range(2)]
    assert [task for tasks, _ in collector.calls for task in tasks] == [task for task in TASKS for _ in range(2)]
    assert [len(tasks) for tasks, _ in collector.calls] == [4, 4, 2]
    assert seen == [(0, 10), 4, (4, 10), 4, (8, 10), 2]
    assert all(r["kind"] == ("even" if r["task"][-1] in "024" else "odd") for r in records)
    assert [r["failure"] for r in records] == [None, None, "worker died"] * 3 + [None]
    assert all(r["steps"] == 3 + r["won"] and r["score"] == 1.0 for r in records)


def test_success_is_won_alone_and_failures_count_nowhere():
    records, *_ = play()
    row = summary(records)[-1]
    played = [r["won"] for r in records if r["failure"] is None]
    assert len(played) == 7 and 0 < sum(played) < 7
    assert (row["episodes"], row["won"], row["failures"]) == (7, sum(played), 3)
    assert row["success"] == pytest.approx(np.mean(played))


def test_records_depend_on_the_parameters_and_the_seed_alone():
    assert play()[0] == play()[0]
    assert play()[0] != play(seed=1)[0]
    assert play()[0] != play(params=1)[0]
    # The batches of one evaluation have different keys.
    wins = [r["won"] for r in play(slots=8, repeats=16)[0]]
    assert len({tuple(wins[i : i + 8]) for i in range(0, len(wins), 8)}) > 1

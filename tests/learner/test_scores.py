"""Step scores among several processes: the first one asks, all learn the same."""

import numpy as np
import pytest

from trca_jax.learner import scores as module
from trca_jax.learner.scores import scored
from trca_jax.rollout.score import ScoreError


class Batch:
    pass


@pytest.fixture
def two(monkeypatch):
    """call(scorer): what each of two processes gets, the one that leads first."""
    monkeypatch.setattr(module.dataclasses, "replace", lambda batch, **fields: fields)
    batch = Batch()
    batch.r_env = np.zeros((2, 2))

    def call(scorer):
        sent, found = [], []
        for leads in (True, False):
            monkeypatch.setattr(module, "leads", lambda leads=leads: leads)
            monkeypatch.setattr(module, "gather", lambda data: sent.append(data) or [sent[0], b""])
            try:
                found.append(scored(scorer, ["e"], batch, None))
            except ScoreError as error:
                found.append(error)
        return found, sent

    return call


def test_the_others_are_told_what_the_first_was_answered(two):
    calls = []
    scores = np.array([[1, np.nan], [-1, 0]], np.float32)
    found, sent = two(lambda *given: calls.append(given) or (scores, {"requests": 2, "cost": 0.1}))
    assert calls == [(["e"], 2, None)] and sent[1] == b""
    for fields, took in found:
        np.testing.assert_array_equal(fields["step_score"], scores)
        assert fields["step_score"].dtype == np.float32 and took == {"judge": {"requests": 2, "cost": 0.1}}


def test_all_of_them_stop_for_the_same_reason(two):
    def scorer(*_):
        raise ScoreError("no route")

    found, _ = two(scorer)
    assert [str(error) for error in found] == ["no route", "no route"]

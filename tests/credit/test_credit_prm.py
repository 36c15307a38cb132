"""PRM: TRCA's comparison of any step reward, and a missing score is no reward of zero."""

import dataclasses

import numpy as np
import oracles
import pytest
from credit_batches import at_live_steps, batch_of, batches
from hypothesis import given, settings

from trca_jax.credit import make
from trca_jax.credit.prm import PRMSettings
from trca_jax.credit.trca import TRCASettings

prm = make("prm")
VARIANT = {"gamma": 0.9, "terminal_scale": 10.0, "episode_value": "return", "invalid_penalty": 0.25}
variant = make("prm", **VARIANT)
SMALL = {"evidence": 0.5, "execution": 0.5, "invalidity": 1.0}  # keeps every rubric reward within -1..1
rubrics = {lam: make("trca", lam=lam, **SMALL) for lam in (0.0, 0.8)}
outcomes = make("trca", step_weight=0.0)
NONE = np.nan


def compare(scores, **given):
    batch = batch_of(**{"r_env": np.zeros(np.shape(scores)), **given}, step_score=np.array(scores, float))
    return prm(batch)


@settings(deadline=None, max_examples=20)
@given(batches())
def test_with_the_rubrics_rewards_as_scores_it_is_trca(batch):
    """λ = 0: r_F alone; λ = 0.8: fused."""
    for lam, trca in rubrics.items():
        expected = trca(batch)
        if lam == 0:
            np.testing.assert_array_equal(expected.rubric, expected.foundational)
        got = prm(dataclasses.replace(batch, step_score=np.asarray(expected.rubric)))
        for name in ("advantage", "episode", "step", "returns"):
            live = at_live_steps(batch, getattr(expected, name)) if name != "episode" else None
            ours = getattr(got, name)
            if live is None:
                np.testing.assert_array_equal(ours, expected.episode)
            else:
                assert at_live_steps(batch, ours) == pytest.approx(live, abs=2e-6)
        assert float(got.diagnostics["unscored"]) == 0 and (np.asarray(got.rubric) == 0).all()


def test_all_that_trca_compares_by_has_the_same_default():
    ours, theirs = (dataclasses.asdict(kind()) for kind in (PRMSettings, TRCASettings))
    assert ours.items() < theirs.items()
    assert theirs.keys() - ours.keys() == {"lam", "evidence", "invalidity", "execution", "budget_mode"}


@settings(deadline=None, max_examples=20)
@given(batches())
def test_other_settings_equal_the_loop(batch):
    advantage = at_live_steps(batch, variant(batch).advantage)
    expected = oracles.prm(batch, gamma=0.9, scale=10.0, penalty=0.25, total=True)
    assert advantage.keys() == expected.keys()
    for place, value in expected.items():
        np.testing.assert_allclose(advantage[place], value, rtol=1e-3, atol=1e-3, err_msg=str(place))


def test_a_better_step_of_a_context_is_pushed_up_and_the_other_down():
    """One step each, nothing won: ±1/√2 for two unequal returns, whatever the scores are."""
    for scores in ([[1], [0]], [[1], [-1]], [[0], [-1]]):
        credit = compare(scores, length=[1, 1], group=[0, 0])
        np.testing.assert_allclose(np.asarray(credit.advantage)[:, 0], [0.5**0.5, -(0.5**0.5)], rtol=1e-5)
    assert (np.asarray(compare([[1], [1]], length=[1, 1], group=[0, 0]).advantage) == 0).all()


def test_the_return_sums_scores_and_the_outcome_from_here_on():
    credit = compare([[1, -1, 0]], r_env=[[0, 0, 1.0]], length=[3], group=[0])
    np.testing.assert_allclose(credit.returns, [[1 - 0.95 + 0.95**2, -1 + 0.95, 1]], rtol=1e-6)


def test_a_missing_score_leaves_its_step_and_those_before_out_of_the_comparison():
    """Rollout 0 has no score at step 1: its last step still counts, the first two do not. The others are compared as
    if those were not there."""
    scores = [[1, NONE, 1], [1, 0, -1], [-1, 0, 0], [0, 1, 1]]
    context = np.tile([0, 1, 2], (4, 1))
    credit = compare(scores, length=[3] * 4, group=[0] * 4, context=context)
    alone = compare(scores[1:], length=[3] * 3, group=[0] * 3, context=context[1:])
    np.testing.assert_array_equal(np.asarray(credit.step)[0, :2], [0, 0])
    np.testing.assert_allclose(np.asarray(credit.step)[1:, :2], np.asarray(alone.step)[:, :2], rtol=1e-5)
    last = np.asarray(credit.step)[:, 2]
    assert last[0] == last[3] > last[2] > last[1]
    found = {name: float(credit.diagnostics[name]) for name in ("unscored", "unknown_returns", "score_mean")}
    assert found == pytest.approx({"unscored": 1 / 12, "unknown_returns": 2 / 12, "score_mean": 3 / 11})


@settings(deadline=None, max_examples=20)
@given(batches())
def test_without_any_score_only_outcomes_are_left(batch):
    blank = dataclasses.replace(batch, step_score=np.full(batch.valid.shape, NONE))
    np.testing.assert_array_equal(prm(blank).advantage, outcomes(batch).advantage)
    assert float(prm(blank).diagnostics["unscored"]) == (batch.length.sum() > 0)

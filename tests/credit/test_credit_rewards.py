"""Rubric rewards: hand numbers and the bounds that hold whatever the judgements are."""

import jax
import numpy as np
import oracles
from credit_batches import ITEMS, STEPS
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trca_jax.credit import rewards

BUDGETS = {"evidence": 0.5, "invalidity": 0.25, "execution": 1.0}
judgements = hnp.arrays(np.int64, (STEPS, ITEMS), elements=st.integers(0, 1))
categories = hnp.arrays(np.int64, ITEMS, elements=st.integers(0, 2))
bindings = hnp.arrays(np.int64, ITEMS, elements=st.integers(0, 1))


@jax.jit
def rubric(judgement, category, bound):
    weight = rewards.item_weights(category, bound, **BUDGETS)
    covered = rewards.coverage(judgement * bound)
    return (
        rewards.foundational_reward(judgement, weight),
        rewards.breakthrough_reward(judgement, weight),
        rewards.potential(covered, weight),
        weight,
    )


def test_rewards_by_hand():
    """Two Evidence items, one Invalidity, one Execution and one unbound Execution item; budgets 1."""
    weight = rewards.item_weights(
        np.array([0, 0, 1, 2, 2]), np.array([1, 1, 1, 1, 0]), evidence=1.0, invalidity=1.0, execution=1.0
    )
    assert weight.tolist() == [0.5, 0.5, -1.0, 1.0, 0.0]
    judgement = np.array([[1, 0, 0, 0, 1], [1, 0, 1, 0, 1], [1, 1, 0, 1, 0]])
    covered = rewards.coverage(judgement)
    assert covered.tolist() == [[1, 0, 0, 0, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1]]
    assert rewards.foundational_reward(judgement, weight).tolist() == [0.5, -0.5, 2.0]
    assert rewards.potential(covered, weight).tolist() == [0.5, 0.5, 2.0]
    assert rewards.breakthrough_reward(judgement, weight).tolist() == [0.5, 0.0, 1.5]
    fused = rewards.fuse(np.array([0.5, -0.5, 2.0]), np.array([0.5, 0.0, 1.5]), 0.8)
    np.testing.assert_allclose(fused, [0.5, -0.1, 1.6], rtol=1e-6)


def test_budgets_per_item_are_not_shared():
    weight = rewards.item_weights(
        np.array([0, 0, 1]), np.ones(3), evidence=1.0, invalidity=2.0, execution=1.0, per_item=True
    )
    assert weight.tolist() == [1.0, 1.0, -2.0]


@settings(deadline=None, max_examples=60)
@given(judgements, categories, bindings)
def test_rewards_equal_the_loop_and_stay_in_their_bounds(judgement, category, bound):
    r_f, r_b, phi, _ = (np.asarray(x) for x in rubric(judgement, category, bound))
    expected_f, expected_b = oracles.rubric_rewards(judgement, category, bound, (0.5, 0.25, 1.0))
    np.testing.assert_allclose(r_f, expected_f, atol=1e-6)
    np.testing.assert_allclose(r_b, expected_b, atol=1e-6)
    held = {kind: bool((bound.astype(bool) & (category == kind)).any()) for kind in range(3)}
    most, least = 0.5 * held[0] + 1.0 * held[2], -0.25 * held[1]
    assert (r_f <= most + 1e-6).all() and (r_f >= least - 1e-6).all()
    assert (r_b >= 0).all() and (np.diff(phi) >= -1e-7).all()
    np.testing.assert_allclose(r_b.sum(), phi[-1], atol=1e-6)
    assert r_b.sum() <= most + 1e-6


@settings(deadline=None, max_examples=30)
@given(judgements, categories, bindings)
def test_repeating_pays_foundational_reward_only(judgement, category, bound):
    longer = np.concatenate([judgement, np.repeat(judgement[-1:], STEPS, axis=0)])
    r_f, r_b, _, _ = rubric(judgement, category, bound)
    longer_f, longer_b, _, _ = rubric(longer, category, bound)
    assert (np.asarray(longer_b)[STEPS:] == 0).all()
    np.testing.assert_array_equal(np.asarray(longer_b)[:STEPS], r_b)
    np.testing.assert_allclose(np.sum(longer_f), np.sum(r_f) + STEPS * r_f[-1], atol=1e-5)


@settings(deadline=None, max_examples=30)
@given(judgements, categories, bindings, st.integers(0, ITEMS - 1))
def test_more_items_of_a_category_share_its_budget(judgement, category, bound, item):
    """A bound copy of an item leaves the most that its category can pay unchanged."""
    bound = bound.copy()
    bound[item] = 1
    twice = np.append(np.arange(ITEMS), item)
    weight = np.asarray(rewards.item_weights(category, bound, **BUDGETS))
    more = np.asarray(rewards.item_weights(category[twice], bound[twice], **BUDGETS))
    for kind in range(3):
        np.testing.assert_allclose(more[category[twice] == kind].sum(), weight[category == kind].sum(), atol=1e-6)


@settings(deadline=None, max_examples=60)
@given(judgements, categories, bindings, hnp.arrays(np.int64, ITEMS, elements=st.integers(0, 1)))
def test_new_coverage_is_preferred(judgement, category, bound, extra):
    """The same last step after a history that already covers more earns less, by λ·Σ w of what is no longer new."""
    more = judgement.copy()
    more[0] |= extra
    lam = 0.8

    def last_reward(history):
        r_f, r_b, _, weight = rubric(history, category, bound)
        return float(rewards.fuse(r_f, r_b, lam)[-1]), np.asarray(weight)

    (reward, weight), (reward_more, _) = last_reward(judgement), last_reward(more)
    before, before_more = judgement[:-1].max(axis=0), more[:-1].max(axis=0)
    no_longer_new = (judgement[-1] == 1) & (before == 0) & (before_more == 1)
    np.testing.assert_allclose(reward - reward_more, lam * np.maximum(weight, 0)[no_longer_new].sum(), atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(judgements, judgements, categories, bindings, st.integers(1, STEPS))
def test_the_reward_of_a_step_does_not_depend_on_later_steps(judgement, other, category, bound, now):
    resampled = np.concatenate([judgement[:now], other[now:]])
    for a, b in zip(rubric(judgement, category, bound)[:3], rubric(resampled, category, bound)[:3], strict=True):
        np.testing.assert_array_equal(np.asarray(a)[:now], np.asarray(b)[:now])

"""TRCA: what its advantages promise, whatever the batch holds."""

import dataclasses

import numpy as np
import oracles
from credit_batches import at_live_steps, batch_of, batches
from hypothesis import given, settings

from trca_jax.credit import make

VARIANTS = {
    "default": ({}, {}),
    "all at once": (
        {
            "lam": 0.5,
            "gamma": 0.9,
            "evidence": 2.0,
            "invalidity": 0.5,
            "budget_mode": "item",
            "terminal_scale": 10.0,
            "episode_value": "return",
            "invalid_penalty": 0.25,
        },
        {
            "lam": 0.5,
            "gamma": 0.9,
            "budget": (2.0, 0.5, 1.0),
            "per_item": True,
            "scale": 10.0,
            "total": True,
            "penalty": 0.25,
        },
    ),
}
compiled = {name: make("trca", **options) for name, (options, _) in VARIANTS.items()}
halves = {part: make("trca", **{f"{part}_weight": 0.0}) for part in ("episode", "step")}
default, breakthrough_only = compiled["default"], make("trca", lam=1.0)
scaled = make("trca", evidence=4.0, invalidity=4.0, execution=4.0, terminal_scale=4.0)


@settings(deadline=None, max_examples=60)
@given(batches())
def test_advantages_equal_the_loop(batch):
    for name, (_, options) in VARIANTS.items():
        advantage = at_live_steps(batch, compiled[name](batch).advantage)
        expected = oracles.trca(batch, **options)
        assert advantage.keys() == expected.keys()
        for place, value in expected.items():
            np.testing.assert_allclose(advantage[place], value, rtol=1e-3, atol=1e-3, err_msg=f"{name} {place}")


@settings(deadline=None, max_examples=60)
@given(batches(success=False))
def test_without_success_the_step_part_still_ranks(batch):
    """Outcomes all 0: A_E is exactly 0, and every context with two unequal returns has both signs and sum 0."""
    credit = default(batch)
    assert (np.asarray(credit.episode) == 0).all()
    np.testing.assert_array_equal(credit.advantage, credit.step)
    returns, step = at_live_steps(batch, credit.returns), at_live_steps(batch, credit.step)
    for context in {batch.context[place] for place in returns}:
        members = [place for place in returns if batch.context[place] == context]
        values, ranks = np.array([returns[p] for p in members]), np.array([step[p] for p in members])
        if len(members) < 2 or np.ptp(values) == 0:
            assert (ranks == 0).all()
        elif np.ptp(values) > 1e-5:
            assert ranks.min() < 0 < ranks.max()
            np.testing.assert_allclose(ranks.sum(), 0, atol=1e-3)
            assert ranks[values.argmax()] == ranks.max() and ranks[values.argmin()] == ranks.min()


@settings(deadline=None, max_examples=30)
@given(batches())
def test_a_part_of_weight_zero_is_left_out(batch):
    whole = default(batch)
    real = np.arange(whole.step.shape[1]) < np.asarray(batch.length)[:, None]
    np.testing.assert_array_equal(halves["episode"](batch).advantage, whole.step)
    np.testing.assert_array_equal(
        halves["step"](batch).advantage, np.where(real, np.asarray(whole.episode)[:, None], 0.0)
    )


def test_the_parts_have_weights_of_their_own():
    batch = batch_of(r_env=[[0, 1], [0, 0], [1, 0]], outcome=[1, 0, 1], length=[2, 1, 2], group=[0, 0, 0])
    whole = default(batch)
    weighted = make("trca", episode_weight=0.5, step_weight=3.0)(batch)
    expected = 0.5 * np.asarray(whole.episode)[:, None] + 3 * np.asarray(whole.step)
    real = np.arange(2) < np.asarray(batch.length)[:, None]
    assert np.ptp(whole.episode) > 0 and np.ptp(whole.step) > 0
    np.testing.assert_allclose(weighted.advantage, np.where(real, expected, 0), rtol=1e-6)


def test_all_successful_is_as_flat_as_all_failed():
    batch = batch_of(r_env=[[0, 0.1], [0.1, 0], [0, 0.1]], outcome=[0.1] * 3, length=[2, 1, 2], group=[0, 0, 0])
    assert (np.asarray(default(batch).episode) == 0).all()


@settings(deadline=None, max_examples=30)
@given(batches())
def test_lambda_one_ignores_invalidity(batch):
    flipped = np.where(batch.item_category[:, None, :] == 1, 1 - batch.judgement, batch.judgement)
    other = dataclasses.replace(batch, judgement=flipped)
    np.testing.assert_array_equal(breakthrough_only(batch).advantage, breakthrough_only(other).advantage)


@settings(deadline=None, max_examples=30)
@given(batches())
def test_one_scale_for_all_rewards_cancels(batch):
    """Four times every budget and the terminal reward: the same A_S, up to eps."""
    credit, times_four = default(batch), scaled(batch)
    np.testing.assert_allclose(times_four.returns, 4 * credit.returns, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(times_four.step, credit.step, rtol=2e-4, atol=2e-4)


@settings(deadline=None, max_examples=30)
@given(batches())
def test_unbound_items_do_not_matter(batch):
    unbound = batch.item_mask[:, None, :] == 0
    other = dataclasses.replace(batch, judgement=np.where(unbound, 1 - batch.judgement, batch.judgement))
    np.testing.assert_array_equal(default(batch).advantage, default(other).advantage)

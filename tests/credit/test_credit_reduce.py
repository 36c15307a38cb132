"""Segment statistics: by hand, exact zeros in float32, the rubbish bin."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from trca_jax.credit import reduce
from trca_jax.credit.reduce import masked_mean, masked_whiten, step_mask

STATIC = ("num_segments", "ddof", "eps", "use_std", "singleton", "floor")
group_normalise = jax.jit(reduce.group_normalise, static_argnames=STATIC)
leave_one_out = jax.jit(reduce.leave_one_out, static_argnames="num_segments")
RULES = {"ddof": 1, "eps": 0.0, "use_std": True}


def test_step_mask_marks_the_first_length_steps():
    assert step_mask(np.array([0, 2, 3]), 3).tolist() == [[False] * 3, [True, True, False], [True] * 3]


def test_masked_mean_ignores_nan_outside_and_empty_is_zero():
    x = np.array([[1.0, 3.0, np.nan], [np.nan] * 3])
    assert masked_mean(x, step_mask(np.array([2, 0]), 3), axis=1).tolist() == [2.0, 0.0]


def test_group_normalise_by_hand():
    # Group 0: 1, 3, 5 (mean 3, std 2 with ddof 1); group 1: 4, 4; group 2: a single 7; the last two are in no group.
    x = jnp.array([1.0, 4, 3, 7, 5, 4, 9, np.nan])
    ids = jnp.array([0, 1, 0, 2, 0, 1, 3, -1])
    every = np.ones(8)
    assert group_normalise(x, ids, every, 3, **RULES).tolist() == [-1, 0, 0, 0, 1, 0, 0, 0]
    assert group_normalise(x, ids, every, 3, **RULES | {"use_std": False}).tolist() == [-2, 0, 0, 0, 2, 0, 0, 0]
    assert group_normalise(x, ids, every, 3, **RULES, singleton="raw").tolist() == [-1, 0, 0, 7, 1, 0, 0, 0]
    population = group_normalise(x, ids, every, 3, **RULES | {"ddof": 0})
    np.testing.assert_allclose(population[4], 2 / np.sqrt(8 / 3), rtol=1e-6)


def test_eps_is_added_to_the_std():
    y = group_normalise(jnp.array([1.0, 3, 5]), jnp.zeros(3, int), np.ones(3), 1, ddof=1, eps=0.5, use_std=True)
    np.testing.assert_allclose(y, [-0.8, 0, 0.8], rtol=1e-6)


def test_elements_that_do_not_count_are_measured_against_those_that_do():
    x, ids, weights = jnp.array([0.0, 2, 100]), jnp.zeros(3, int), np.array([1, 1, 0])
    np.testing.assert_allclose(group_normalise(x, ids, weights, 1, **RULES | {"use_std": False}), [-1, 1, 99])
    np.testing.assert_allclose(leave_one_out(x, ids, weights, 1), [-2, 2, 198])


def test_the_floor_is_added_to_the_variance():
    y = group_normalise(jnp.array([1.0, 3, 5]), jnp.zeros(3, int), np.ones(3), 1, **RULES, floor=5.0)
    np.testing.assert_allclose(y, np.array([-2, 0, 2]) / 3, rtol=1e-6)


@pytest.mark.parametrize("rules", [{}, {"use_std": False}])
def test_equal_values_give_exactly_zero_in_float32(rules):
    """The float32 mean of equal values is often one ulp away from them, and an ulp over eps is no longer small."""
    values = np.random.default_rng(0).uniform(-100, 100, 300).astype(np.float32)
    size = 7
    x, ids = jnp.repeat(jnp.asarray(values), size), jnp.repeat(jnp.arange(300), size)
    means = np.add.reduce(np.asarray(x).reshape(300, size), axis=1, dtype=np.float32) / np.float32(size)
    assert (means != values).any()
    y = group_normalise(x, ids, np.ones(x.size), 300, **{"ddof": 1, "eps": 1e-6, "use_std": True} | rules)
    assert y.dtype == jnp.float32
    assert (np.asarray(y) == 0).all()
    one_ulp_apart = x.at[0].set(np.nextafter(values[0], np.float32(1e9)))
    assert (np.asarray(group_normalise(one_ulp_apart, ids, np.ones(x.size), 300, **RULES | {"eps": 1e-6})) == 0).all()


def test_two_passes_keep_a_small_std_beside_a_large_mean():
    y = group_normalise(jnp.array([4096.0, 4097, 4098]), jnp.zeros(3, int), np.ones(3), 1, **RULES)
    np.testing.assert_allclose(y, [-1, 0, 1], rtol=1e-6)


def test_leave_one_out_by_hand():
    y = leave_one_out(jnp.array([1.0, 2, 6, 8]), jnp.array([0, 0, 0, 1]), np.ones(4), 2)
    np.testing.assert_allclose(y, [1 - 4, 2 - 3.5, 6 - 1.5, 8], rtol=1e-6)


def test_whitening_of_a_single_token_only_centres():
    assert masked_whiten(jnp.array([[3.0, 5.0]]), np.array([[1, 0]])).tolist() == [[0.0, 2.0]]

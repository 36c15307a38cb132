"""Returns and GAE against sums written out."""

import numpy as np
import oracles

from trca_jax.credit.returns import discounted_returns, gae


def test_discounted_returns_by_hand():
    rewards = np.array([[1.0, 0, 4], [2, 8, 99]])
    returns = discounted_returns(rewards, np.array([[1, 1, 1], [1, 1, 0]]), 0.5)
    assert returns.tolist() == [[2.0, 2.0, 4.0], [6.0, 8.0, 0.0]]


def test_discounted_returns_equal_the_double_sum():
    rng = np.random.default_rng(1)
    rewards, length = rng.normal(size=(5, 7)), [7, 0, 3, 1, 5]
    returns = np.asarray(discounted_returns(rewards, np.arange(7) < np.array(length)[:, None], 0.95))
    for r, n in enumerate(length):
        np.testing.assert_allclose(returns[r, :n], oracles.discounted(rewards[r, :n], 0.95), rtol=2e-5, atol=1e-6)
        assert (returns[r, n:] == 0).all()


def test_gae_jumps_over_tokens_outside_the_mask():
    rng = np.random.default_rng(2)
    rewards, values = rng.normal(size=(2, 4, 6))
    mask = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1], [1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
    advantages, returns = gae(rewards, values, mask, 0.9, 0.7)
    expected = [oracles.gae(rewards[b], values[b], mask[b], 0.9, 0.7) for b in range(4)]
    flat = [a for row in expected for a in row.values()]
    centre, std = oracles.mean(flat), oracles.spread(flat, ddof=1)
    for b, row in enumerate(expected):
        for token, advantage in row.items():
            np.testing.assert_allclose(returns[b, token], advantage + values[b, token], rtol=2e-5, atol=1e-6)
            np.testing.assert_allclose(advantages[b, token], (advantage - centre) / std, rtol=2e-5, atol=1e-6)

"""What tokens are drawn from, against loops over sorted probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.policy.decoding import Decoding, distribution, draw
from trca_jax.policy.head import log_softmax, pack_allowed

V = 12


def oracle(logits, decoding, allowed):
    """Probabilities [V]: temper, keep top_k, then the smallest nucleus; equals of the last one kept stay."""
    p = np.where(allowed, np.exp((logits - logits.max()) / decoding.temperature), 0.0)
    p /= p.sum()
    if decoding.top_k:
        p = np.where(p >= sorted(p)[-min(decoding.top_k, V)], p, 0.0)
        p /= p.sum()
    if decoding.top_p < 1:
        total = 0.0
        for value in sorted(p, reverse=True):
            least, total = value, total + value
            if total >= decoding.top_p:
                break
        p = np.where(p >= least, p, 0.0)
        p /= p.sum()
    return p


@settings(deadline=None)  # the first call compiles
@given(
    # Whole numbers have ties; the temperatures and cuts fall on no sum of probabilities.
    st.lists(st.integers(-3, 3), min_size=V, max_size=V),
    st.lists(st.booleans(), min_size=V, max_size=V).filter(any),
    st.sampled_from([0.7, 1.0, 1.9]),
    st.sampled_from([1.0, 0.913, 0.37]),
    st.sampled_from([0, 1, 4, 99]),
)
def test_cuts_keep_the_likeliest(logits, allowed, temperature, top_p, top_k):
    decoding = Decoding(temperature, top_p, top_k)
    logits, allowed = np.array(logits, np.float32), np.array(allowed)
    got = np.exp(distribution(jnp.asarray(logits)[None], decoding, pack_allowed(allowed)[None]))[0]
    np.testing.assert_allclose(got, oracle(logits, decoding, allowed), atol=1e-6)


def test_plain_decoding_is_what_the_trainer_scores():
    logits = jax.random.normal(jax.random.key(0), (3, V))
    np.testing.assert_array_equal(distribution(logits, Decoding(0.7), None), log_softmax(logits, 0.7))


def test_temperature_zero_takes_the_likeliest_and_reports_temperature_one():
    logits = jax.random.normal(jax.random.key(0), (3, V))
    logp = distribution(logits, Decoding(0.0), None)
    np.testing.assert_array_equal(logp, log_softmax(logits, 1.0))
    keys = jax.random.split(jax.random.key(1), 3)
    np.testing.assert_array_equal(draw(keys, logp, Decoding(0.0)), np.argmax(logits, axis=-1))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"temperature": -1.0}, "temperature -1.0 must be at least 0"),
        ({"temperature": float("nan")}, "temperature nan must be at least 0"),
        ({"top_p": 0.0}, "top_p 0.0 must be above 0 and at most 1"),
        ({"top_p": 1.1}, "top_p 1.1 must be above 0 and at most 1"),
        ({"top_k": -1}, "top_k -1 must be at least 0"),
        ({"temperature": 0.0, "top_p": 0.9}, "temperature 0 takes the likeliest token; leave top_p at 1"),
        ({"temperature": 0.0, "top_k": 5}, "temperature 0 takes the likeliest token; leave top_p at 1"),
    ],
)
def test_what_cannot_be_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Decoding(**wrong)

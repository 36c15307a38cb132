"""Log-probabilities and entropies: chunks, masks, temperature and types against loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from trca_jax.policy import head
from trca_jax.policy.head import log_softmax, logits, pack_allowed, token_logp

B, L, D, V = 2, 7, 5, 13


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    hidden, embedding = rng.standard_normal((B, L, D)), rng.standard_normal((V, D))
    targets = rng.integers(0, V, (B, L))
    allowed = rng.random((B, L, V)) < 0.4
    np.put_along_axis(allowed, targets[..., None], True, axis=2)
    allowed[0, 3] = False  # nothing named: everything is allowed
    allowed[1, 2] = np.arange(V) == targets[1, 2]  # one choice
    return hidden.astype(np.float32), embedding.astype(np.float32), targets, allowed


def loop(case, temperature, constrained):
    hidden, embedding, targets, allowed = case
    logp, entropy = np.zeros((2, B, L))
    for b in range(B):
        for t in range(L):
            z = [float(hidden[b, t] @ embedding[v]) / temperature for v in range(V)]
            open_to = [v for v in range(V) if allowed[b, t, v] or not allowed[b, t].any() or not constrained]
            total = sum(np.exp(z[v]) for v in open_to)
            p = {v: np.exp(z[v]) / total for v in open_to}
            logp[b, t] = np.log(p[targets[b, t]])
            entropy[b, t] = -sum(x * np.log(x) for x in p.values())
    return logp, entropy


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_log_probability_and_entropy_equal_a_loop(case, temperature, constrained):
    bits = pack_allowed(jnp.asarray(case[3])) if constrained else None
    logp, entropy = token_logp(*case[:3], temperature, bits)
    expected = loop(case, temperature, constrained)
    np.testing.assert_allclose(logp, expected[0], atol=1e-5)
    np.testing.assert_allclose(entropy, expected[1], atol=1e-5)
    if constrained:
        assert (logp[1, 2], entropy[1, 2]) == (0, 0)


@pytest.mark.parametrize("constrained", [False, True])
def test_chunks_change_neither_values_nor_gradients(case, constrained, monkeypatch):
    """Rows of 7 tokens in chunks of 2: the last chunk is padded with 1."""
    bits = pack_allowed(jnp.asarray(case[3])) if constrained else None

    def total(hidden, embedding):
        logp, entropy = token_logp(hidden, embedding, case[2], 0.7, bits)
        return jnp.sum(jnp.sin(jnp.arange(B * L).reshape(B, L)) * logp + entropy), (logp, entropy)

    run = jax.value_and_grad(total, argnums=(0, 1), has_aux=True)
    whole = run(*case[:2])
    monkeypatch.setattr(head, "_CHUNK_ELEMENTS", 2 * B * V + 1)
    chunked = run(*case[:2])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-6), chunked, whole)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(whole))
    assert np.abs(whole[1][0]).max() > 0.01


def test_more_than_one_chunk_never_holds_all_logits(case, monkeypatch):
    monkeypatch.setattr(head, "_CHUNK_ELEMENTS", 2 * B * V)
    text = str(jax.make_jaxpr(jax.grad(lambda h: token_logp(h, *case[1:3])[0].sum()))(case[0]))
    assert f"f32[{B},2,{V}]" in text
    assert not any(f"f32[{shape},{V}]" in text for shape in (f"{B},7", f"{B},8", f"4,{B},2", "14", "16"))


def test_a_target_that_is_not_allowed_is_impossible_and_its_gradient_finite(case):
    hidden, embedding, targets, allowed = case
    allowed = allowed.copy()
    allowed[0, 0] = np.arange(V) == (targets[0, 0] + 1) % V
    bits = pack_allowed(jnp.asarray(allowed))
    assert token_logp(hidden, embedding, targets, 1.0, bits)[0][0, 0] == -np.inf

    def masked(hidden):
        logp, entropy = token_logp(hidden, embedding, targets, 1.0, bits)
        return jnp.sum(jnp.where(jnp.isneginf(logp), 0.0, logp) + entropy)

    assert np.isfinite(jax.grad(masked)(hidden)).all()


def test_bits_hold_eight_tokens_a_byte():
    allowed = jnp.zeros((1, 10), bool).at[0, jnp.array([0, 9])].set(True)
    assert pack_allowed(allowed).tolist() == [[0b10000000, 0b01000000]]
    probabilities = jnp.exp(log_softmax(jnp.arange(10.0)[None], 1.0, pack_allowed(allowed)))
    assert probabilities[0, 9] == pytest.approx(1 / (1 + np.exp(-9)))
    assert probabilities[0, 1:9].sum() == 0


def test_logits_of_half_precision_hidden_states_are_summed_in_float32():
    """2049 is no bfloat16 number: rounding the sum would give 2048."""
    out = logits(jnp.ones((1, 2049), jnp.bfloat16), jnp.ones((3, 2049)))
    assert out.dtype == jnp.float32
    assert out.tolist() == [[2049.0] * 3]

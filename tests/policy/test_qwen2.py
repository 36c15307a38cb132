"""The Flax model against a numpy loop, and what its masks and cache promise."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny import TINY, random_params

from trca_jax.policy import qwen2
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.qwen2 import Qwen2, empty_cache

POSITIONS = np.arange(12)[None].repeat(3, axis=0)


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(0).integers(0, TINY.vocab_size, (3, 12))


@pytest.fixture(scope="module")
def apply(params):
    run = jax.jit(
        lambda tokens, positions, segments: Qwen2(TINY).apply({"params": params}, tokens, positions, segments)
    )
    return lambda tokens, positions=POSITIONS, segments=None: np.asarray(run(tokens, positions, segments)[0])


def loop_model(config, params, tokens):
    """Final hidden states of one row, head by head and pair by pair in float64."""
    p = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    norm = lambda x, w: x / np.sqrt(np.mean(x**2) + config.rms_norm_eps) * w  # noqa: E731
    half, group = config.head_dim // 2, config.num_heads // config.num_kv_heads

    def rotate(x, position):
        out = np.empty_like(x)
        for i in range(half):
            angle = position * config.rope_theta ** (-2 * i / config.head_dim)
            out[i] = x[i] * np.cos(angle) - x[i + half] * np.sin(angle)
            out[i + half] = x[i + half] * np.cos(angle) + x[i] * np.sin(angle)
        return out

    rows = [p["embedding"][t] for t in tokens]
    for n in range(config.num_layers):
        w = jax.tree.map(lambda x, n=n: x[n], p["layers"])
        inputs = [norm(x, w["input_norm"]["weight"]) for x in rows]
        project = lambda h, name, head, w=w: h @ w[name]["kernel"][:, head] + w[name]["bias"][head]  # noqa: E731
        updated = []
        for t, x in enumerate(rows):
            total = x.copy()
            for head in range(config.num_heads):
                shared = head // group
                query = rotate(project(inputs[t], "q", head), t)
                scores = [
                    query @ rotate(project(inputs[s], "k", shared), s) / np.sqrt(config.head_dim) for s in range(t + 1)
                ]
                weights = np.exp(scores) / np.exp(scores).sum()
                mixed = sum(weights[s] * project(inputs[s], "v", shared) for s in range(t + 1))
                total += mixed @ w["o"]["kernel"][head]
            h = norm(total, w["post_norm"]["weight"])
            gate, up = h @ w["gate"]["kernel"], h @ w["up"]["kernel"]
            updated.append(total + (gate / (1 + np.exp(-gate)) * up) @ w["down"]["kernel"])
        rows = updated
    return np.array([norm(x, p["norm"]["weight"]) for x in rows])


def test_hidden_states_equal_a_loop_over_heads_and_pairs(params, tokens, apply):
    np.testing.assert_allclose(apply(tokens)[1], loop_model(TINY, params, tokens[1]), atol=5e-5)


def test_packed_segments_do_not_see_each_other(tokens, apply):
    segments = np.array([[1] * 5 + [2] * 7] * 3)
    positions = np.array([[*range(5), *range(7)]] * 3)
    alone = np.zeros_like(tokens)
    alone[:, :7] = tokens[:, 5:]
    packed = apply(tokens, positions, segments)
    np.testing.assert_allclose(packed[:, :5], apply(tokens)[:, :5], atol=1e-5)
    np.testing.assert_allclose(packed[:, 5:], apply(alone)[:, :7], atol=1e-5)
    # Without the ids the second part would see the first.
    assert np.abs(apply(tokens, positions)[:, 5:] - packed[:, 5:]).max() > 0.01


def test_what_stands_behind_the_end_of_a_row_changes_nothing(tokens, apply):
    other = tokens.copy()
    other[:, 9:] = (other[:, 9:] + 7) % TINY.vocab_size
    np.testing.assert_array_equal(apply(tokens)[:, :9], apply(other)[:, :9])


def test_blocks_of_queries_change_nothing(params, monkeypatch):
    """A row of 300 tokens in two segments takes three blocks of 128; one block of 300 is the plain oracle."""
    tokens = np.random.default_rng(1).integers(0, TINY.vocab_size, (1, 300))
    segments = np.array([[1] * 140 + [2] * 160])
    run = lambda: Qwen2(TINY).apply({"params": params}, tokens, jnp.arange(300)[None], segments)[0]  # noqa: E731
    blocked = jax.jit(run)()
    monkeypatch.setattr(qwen2, "_BLOCK", 300)
    np.testing.assert_allclose(blocked, jax.jit(lambda: run())(), atol=2e-5)


def test_the_cache_gives_what_the_whole_row_gives(params, tokens, apply):
    """Rows of different length are fed in two ragged chunks; padding of the first is overwritten by the second."""
    first, second = np.array([3, 7, 5]), np.array([6, 2, 4])
    rows = np.arange(3)[:, None]

    @jax.jit
    def append(cache, new, start):
        positions = start[:, None] + jnp.arange(new.shape[1])
        return Qwen2(TINY).apply({"params": params}, new, positions, cache=cache)

    blank = np.zeros((3, 8), int)
    column = np.arange(8)[None]
    head = np.where(column < first[:, None], tokens[:, :8], 9)
    tail = np.where(column < second[:, None], tokens[rows, np.minimum(first[:, None] + column, 11)], 9)
    one, cache = append(empty_cache(TINY, 3, 16), blank + head, np.zeros(3, int))
    two, _ = append(cache, blank + tail, first)
    whole = apply(tokens)
    for b in range(3):
        np.testing.assert_allclose(one[b, : first[b]], whole[b, : first[b]], atol=1e-5)
        np.testing.assert_allclose(two[b, : second[b]], whole[b, first[b] : first[b] + second[b]], atol=1e-5)


@pytest.mark.parametrize("kept", ["dots", "layer"])
def test_what_is_computed_again_changes_no_gradient(params, tokens, kept):
    def gradient(remat):
        config = dataclasses.replace(TINY, remat=remat)
        loss = lambda p: jnp.sum(jnp.sin(Qwen2(config).apply({"params": p}, tokens, POSITIONS)[0]))  # noqa: E731
        return jax.grad(loss)(params), str(jax.make_jaxpr(jax.grad(loss))(params))

    plain, text = gradient("none")
    again, other = gradient(kept)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), plain, again)
    assert ("remat" in other or "checkpoint" in other) and "checkpoint" not in text and "remat" not in text


def test_the_untied_head_is_a_table_of_its_own(params):
    untied = dataclasses.replace(TINY, tie_embeddings=False)
    more = random_params(untied)
    assert more["lm_head"].shape == more["embedding"].shape and "lm_head" not in params
    assert qwen2.output_embedding(untied, more) is more["lm_head"]
    assert qwen2.output_embedding(TINY, params) is params["embedding"]


def test_half_precision_computes_in_bfloat16_from_float32_parameters(params, tokens, apply):
    half = dataclasses.replace(TINY, dtype="bfloat16")
    cache = empty_cache(half, 3, 16)
    run = jax.jit(lambda params, cache: Qwen2(half).apply({"params": params}, tokens, POSITIONS, cache=cache))
    hidden, cache = run(params, cache)
    assert (hidden.dtype, cache.k.dtype, cache.v.dtype) == (jnp.bfloat16,) * 3
    error = np.abs(np.asarray(hidden, np.float32) - apply(tokens))
    assert 1e-4 < error.mean() < 0.05
    total = lambda p: Qwen2(half).apply({"params": p}, tokens, POSITIONS)[0].astype(jnp.float32).sum()  # noqa: E731
    gradient = jax.grad(total)(params)
    assert {x.dtype for x in jax.tree.leaves(gradient)} == {jnp.dtype("float32")}


def test_fresh_parameters_are_plain_float32_with_the_layers_in_front():
    params = qwen2.init_params(TINY, jax.random.key(0))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}
    assert params["layers"]["q"]["kernel"].shape == (2, 32, 4, 8)
    assert params["layers"]["o"]["kernel"].shape == (2, 4, 8, 32)
    # The layers are not copies of one draw.
    assert not np.allclose(*params["layers"]["q"]["kernel"])
    assert float(jnp.std(params["embedding"])) == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_kv_heads": 3}, "num_heads 4 must be a multiple of num_kv_heads 3"),
        ({"head_dim": 7}, "head_dim 7 must be"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Qwen2Config(**{**vars(TINY), **change})

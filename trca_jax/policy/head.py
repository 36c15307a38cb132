"""From hidden states to log-probabilities: the one place that knows temperature and the mask of allowed tokens."""

from __future__ import annotations

import jax
import jax.numpy as jnp

# Logits of one chunk hold at most this many numbers a device; more than one chunk is recomputed in the backward pass.
_CHUNK_ELEMENTS = 1 << 25


def pack_allowed(allowed: jax.Array) -> jax.Array:
    """Booleans [..., V] to bits [..., ceil(V/8)] uint8: how a mask of allowed tokens is stored."""
    return jnp.packbits(allowed, axis=-1)


def logits(hidden: jax.Array, embedding: jax.Array) -> jax.Array:
    """hidden [..., D] times embedding [V, D] -> [..., V]; multiplied in hidden's type, summed and kept in float32."""
    return jnp.einsum("...d,vd->...v", hidden, embedding.astype(hidden.dtype), preferred_element_type=jnp.float32)


def log_softmax(logits: jax.Array, temperature: float, allowed: jax.Array | None = None) -> jax.Array:
    """log π(·) of the sampling distribution, softmax(logits / T) over the allowed tokens; float32.

    logits [..., V]; allowed bits [..., ceil(V/8)] or None (all). A position with no bit set allows every token, so
    that padding needs no care. Sampler and trainer both call this: their log-probabilities agree by construction.
    """
    logits = logits.astype(jnp.float32) / temperature
    if allowed is not None:
        bits = jnp.unpackbits(allowed, axis=-1, count=logits.shape[-1]).astype(bool)
        logits = jnp.where(bits | ~bits.any(axis=-1, keepdims=True), logits, -jnp.inf)
    return jax.nn.log_softmax(logits, axis=-1)


def token_logp(hidden, embedding, targets, temperature: float = 1.0, allowed=None):
    """log π(target) and entropy −Σ π log π of every position, without ever holding all logits at once.

    hidden [B, L, D], embedding [V, D], targets [B, L] ids, allowed bits [B, L, ceil(V/8)] or None -> two [B, L].
    """
    length = targets.shape[1]
    devices = max(jax.sharding.get_abstract_mesh().size, 1)
    size = max(1, _CHUNK_ELEMENTS * devices // (targets.shape[0] * embedding.shape[0]))

    def chunk(args):
        h, y, bits = args
        logp = log_softmax(logits(h, embedding), temperature, bits)
        # A token that is not allowed has p = 0 and log p = -inf; it adds nothing, and must not add a NaN gradient.
        entropy = -jnp.sum(jnp.exp(logp) * jnp.where(jnp.isneginf(logp), 0.0, logp), axis=-1)
        return jnp.take_along_axis(logp, y[..., None], axis=-1)[..., 0], entropy

    if length <= size:
        return chunk((hidden, targets, allowed))

    def split(x):
        """[B, L, ...] to [chunks, B, size, ...]: along the length, as rows may lie on different devices."""
        x = jnp.pad(x, ((0, 0), (0, -length % size)) + ((0, 0),) * (x.ndim - 2))
        return x.reshape(x.shape[0], -1, size, *x.shape[2:]).swapaxes(0, 1)

    out = jax.lax.map(jax.checkpoint(chunk), jax.tree.map(split, (hidden, targets, allowed)))
    return tuple(x.swapaxes(0, 1).reshape(x.shape[1], -1)[:, :length] for x in out)

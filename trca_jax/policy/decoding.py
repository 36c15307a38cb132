"""How a token is drawn from the logits: the whole tempered distribution, a part of it, or its likeliest token."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from trca_jax.policy.head import log_softmax


@dataclass(frozen=True)
class Decoding:
    """A token is drawn from softmax(logits / temperature); temperature 0 takes the likeliest one.

    top_k: of the so many likeliest tokens alone (0: of all). top_p: of the smallest set of the likeliest that has this
    probability (1: of all); after top_k, if both are set. Tokens as likely as the last one kept are kept too.
    Raises ValueError for a value out of range, and for a cut at temperature 0.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0

    def __post_init__(self):
        if not self.temperature >= 0:
            raise ValueError(f"temperature {self.temperature} must be at least 0 (0: the likeliest token)")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p {self.top_p} must be above 0 and at most 1 (1: all tokens)")
        if self.top_k < 0:
            raise ValueError(f"top_k {self.top_k} must be at least 0 (0: all tokens)")
        if self.temperature == 0 and (self.top_p < 1 or self.top_k):
            raise ValueError("temperature 0 takes the likeliest token; leave top_p at 1 and top_k at 0")


def distribution(logits: jax.Array, decoding: Decoding, allowed: jax.Array | None) -> jax.Array:
    """log π [..., V] of what tokens are drawn from; at temperature 0, where nothing is drawn, that of temperature 1.

    logits [..., V]; allowed: as in `head.log_softmax`.
    """
    logp = log_softmax(logits, decoding.temperature or 1.0, allowed)
    if decoding.top_k:
        least = jax.lax.top_k(logp, min(decoding.top_k, logp.shape[-1]))[0][..., -1:]
        logp = jax.nn.log_softmax(jnp.where(logp >= least, logp, -jnp.inf), axis=-1)
    if decoding.top_p < 1:
        ranked = jnp.sort(logp, axis=-1, descending=True)
        before = jnp.cumsum(jnp.exp(ranked), axis=-1) - jnp.exp(ranked)
        least = jnp.min(jnp.where(before < decoding.top_p, ranked, jnp.inf), axis=-1, keepdims=True)
        logp = jax.nn.log_softmax(jnp.where(logp >= least, logp, -jnp.inf), axis=-1)
    return logp


def draw(keys: jax.Array, logp: jax.Array, decoding: Decoding) -> jax.Array:
    """One token a row: keys [B], logp [B, V] -> ids [B]."""
    if decoding.temperature == 0:
        return jnp.argmax(logp, axis=-1)
    return jax.vmap(jax.random.categorical)(keys, logp)

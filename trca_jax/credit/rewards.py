"""From Boolean judgements to rubric rewards; every array is [..., T, J] or [..., J], time before items."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from trca_jax.credit.types import EVIDENCE, EXECUTION, INVALIDITY


def item_weights(
    category: Int[Array, "... J"],
    bound: Shaped[Array, "... J"],
    *,
    evidence: float,
    invalidity: float,
    execution: float,
    per_item: bool = False,
) -> Float[Array, "... J"]:
    """Signed weight of an item: w_j = ±r_c/M_c, − for Invalidity, M_c the bound items of its category; 0 if not bound.

    category: 0 Evidence, 1 Invalidity, 2 Execution. bound: 0/1. evidence, invalidity, execution: budget r_c that all
    items of the category share, or that each item has on its own (per_item). Source: methods 10.2, 10.7.
    """
    weight = jnp.zeros(jnp.shape(category), dtype=float)
    for label, budget in ((EVIDENCE, evidence), (INVALIDITY, -invalidity), (EXECUTION, execution)):
        member = (category == label) & jnp.asarray(bound).astype(bool)
        share = 1 if per_item else jnp.maximum(member.sum(-1, keepdims=True), 1)
        weight = jnp.where(member, budget / share, weight)
    return weight


def foundational_reward(judgement: Shaped[Array, "... T J"], weight: Float[Array, "... J"]) -> Float[Array, "... T"]:
    """r_F,t = Σ_j w_j·O_t,j: what the transition earns whenever it happens, repeated or not. Source: methods 10.2."""
    return jnp.einsum("...tj,...j->...t", jnp.asarray(judgement, weight.dtype), weight)


def coverage(judgement: Shaped[Array, "... T J"]) -> Float[Array, "... T J"]:
    """C_t,j = max_{k≤t} O_k,j: the item has fired so far. Source: methods 10.2."""
    steps, first = _first(judgement)
    return jnp.where(steps >= first, 1.0, 0.0)


def potential(covered: Float[Array, "... T J"], weight: Float[Array, "... J"]) -> Float[Array, "... T"]:
    """Φ_t = Σ_j max(w_j, 0)·C_t,j: the progress held after step t. Source: methods 10.2."""
    return jnp.einsum("...tj,...j->...t", covered, jnp.maximum(weight, 0))


def breakthrough_reward(judgement: Shaped[Array, "... T J"], weight: Float[Array, "... J"]) -> Float[Array, "... T"]:
    """r_B,t = Φ_t − Φ_{t−1} with Φ_{−1} = 0: what the transition covers for the first time.

    Summed over the items that fire for the first time, so a step without new coverage gives exactly 0.
    Source: methods 10.2.
    """
    steps, first = _first(judgement)
    return potential(jnp.where(steps == first, 1.0, 0.0), weight)


def _first(judgement: Shaped[Array, "... T J"]):
    """The steps [T, 1], and the first one at which each item fires [..., 1, J], T if it never does."""
    judgement = jnp.asarray(judgement)
    count = judgement.shape[-2]
    steps = jnp.arange(count)[:, None]
    return steps, jnp.where(judgement > 0, steps, count).min(axis=-2, keepdims=True)  # several times a cummax's speed


def fuse(foundational: Float[Array, "... T"], breakthrough: Float[Array, "... T"], lam: float) -> Float[Array, "... T"]:
    """r_TRCA = (1−λ)·r_F + λ·r_B. Source: methods 10.2."""
    return (1 - lam) * foundational + lam * breakthrough

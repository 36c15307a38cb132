"""StepSearch: PPO whose search steps earn what their documents add to the golden ones, minus what they repeat."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from trca_jax.credit.ppo import token_credit
from trca_jax.credit.reduce import keep, step_mask
from trca_jax.credit.settings import check_number
from trca_jax.credit.types import Credit, CreditBatch


@dataclass(frozen=True, kw_only=True)
class StepSearchSettings:
    """scale: of the step rewards (0.6 as published; the released code has an effective 1.6). gamma, lam: a token."""

    scale: float = 0.6
    gamma: float = 1.0
    lam: float = 1.0

    def __post_init__(self):
        check_number("scale", self.scale)
        check_number("gamma", self.gamma, 0, 1)
        check_number("lam", self.lam, 0, 1)


def documents_gain(similarity: Float[Array, "... T G"]) -> Float[Array, "... T"]:
    """mean_i max(c_i[t] − m_i[t], 0), m_i[t] the largest c_i of the steps before t (0 at first).

    similarity: c_i[t] ≥ 0, the best match of step t's documents with golden document i; −1: there is no document i.
    0 without golden documents.
    """
    similarity = jnp.asarray(similarity, dtype=float)
    known = (similarity >= 0).any(axis=-2, keepdims=True)
    best = jax.lax.cummax(jnp.maximum(similarity, 0.0), axis=similarity.ndim - 2)
    before = jnp.concatenate([jnp.zeros_like(best[..., :1, :]), best[..., :-1, :]], axis=-2)
    gain = jnp.where(known, jnp.maximum(similarity - before, 0.0), 0.0)
    return gain.sum(axis=-1) / jnp.maximum(known.sum(axis=-1), 1)


def stepsearch(batch: CreditBatch, settings: StepSearchSettings) -> Credit:
    """Token advantages over the whole trajectory for rewards r_env + scale·(gain − redundancy).

    A task without golden documents has no step rewards.
    batch: see `CreditBatch`; reads r_env, length, golden_similarity, redundancy, token_values and token_mask.
    Source: methods 9.3.
    """
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    similarity = jnp.where(mask_rt[:, :, None], jnp.asarray(batch.golden_similarity), -1.0)
    known_r = (similarity >= 0).any(axis=(1, 2))
    shaped_rt = jnp.where(known_r[:, None], documents_gain(similarity) - keep(batch.redundancy, mask_rt), 0.0)
    rewards_rt = keep(jnp.asarray(batch.r_env) + settings.scale * shaped_rt, mask_rt)
    return token_credit(batch, rewards_rt, gamma=settings.gamma, lam=settings.lam, span="trajectory")

"""What the outcome methods compare: a score for each step, its task, and whether it counts in the statistics."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from trca_jax.credit.reduce import keep, step_mask
from trca_jax.credit.types import CreditBatch


def penalty(batch: CreditBatch, mask_rt: Bool[Array, "R T"], coefficient: float) -> Float[Array, "R T"]:
    """coefficient at the real steps whose action could not be parsed, else 0. Source: methods 2.2."""
    return keep(coefficient * (1.0 - batch.valid), mask_rt)


def row_scores(batch: CreditBatch, invalid_penalty: float) -> Float[Array, "R T"]:
    """Score of each step: the rollout's total environment reward minus the step's own penalty (methods 2.1, 2.2)."""
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    total_r = keep(batch.r_env, mask_rt).sum(axis=1)
    return keep(total_r[:, None], mask_rt) - penalty(batch, mask_rt, invalid_penalty)


def task_ids(batch: CreditBatch, mask_rt: Bool[Array, "R T"]) -> Int[Array, "R"]:
    """The task of each rollout, and the rubbish bin for those of length 0."""
    return jnp.where(mask_rt[:, 0], batch.group, -1)


def unit_weights(mask_rt: Bool[Array, "R T"], stat_unit: str) -> Bool[Array, "R T"]:
    """The steps that count: all real ones, or the first of each rollout (whose score then stands for the rollout)."""
    return mask_rt if stat_unit == "row" else mask_rt & (jnp.arange(mask_rt.shape[1]) == 0)

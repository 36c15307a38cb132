"""Scalars that say whether a batch can carry credit at all."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from trca_jax.credit.reduce import group_sizes, masked_mean, step_mask
from trca_jax.credit.types import CreditBatch


def diagnose(batch: CreditBatch) -> dict[str, Float[Array, ""]]:
    """outcome_flat: share of the tasks whose rollouts all have the same outcome (a single rollout counts as flat)."""
    rollouts = len(batch.outcome)
    played = jnp.asarray(batch.length) > 0
    task = jnp.where(played, batch.group, rollouts)
    high = jax.ops.segment_max(jnp.where(played, batch.outcome, -jnp.inf), task, rollouts + 1)[:-1]
    low = jax.ops.segment_min(jnp.where(played, batch.outcome, jnp.inf), task, rollouts + 1)[:-1]
    tasks = group_sizes(batch.group, played, rollouts)
    return {"outcome_flat": masked_mean(high - low <= 1e-6, tasks > 0)}


def diagnose_contexts(batch: CreditBatch) -> dict[str, Float[Array, ""]]:
    """With `diagnose`, for methods that compare inside contexts. context_group_size: real steps a context, on average.
    context_shared: share of the real steps whose context holds at least two. Source: methods 10.4."""
    rollouts, steps = batch.context.shape
    size = group_sizes(batch.context, step_mask(batch.length, steps), rollouts * steps)
    return diagnose(batch) | {
        "context_group_size": masked_mean(size, size > 0),
        "context_shared": jnp.where(size >= 2, size, 0).sum() / jnp.maximum(size.sum(), 1),
    }

"""Scalars that say whether a batch can carry credit at all."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from trca_jax.credit.reduce import group_spread, masked_mean, step_mask
from trca_jax.credit.types import CreditBatch


def diagnose(batch: CreditBatch) -> dict[str, Float[Array, ""]]:
    """Three scalars of a batch, equal for every method.

    context_group_size: real steps a context, on average. context_shared: share of the real steps whose context holds
    at least two steps. outcome_flat: share of the tasks whose rollouts all have the same outcome (a single rollout
    counts as flat). Source: methods 10.4.
    """
    rollouts, steps = batch.context.shape
    live = step_mask(batch.length, steps)
    size, _ = group_spread(jnp.zeros_like(live), batch.context, live, rollouts * steps)
    tasks, flat = group_spread(batch.outcome, batch.group, live[:, 0], rollouts)
    return {
        "context_group_size": masked_mean(size, size > 0),
        "context_shared": jnp.where(size >= 2, size, 0).sum() / jnp.maximum(size.sum(), 1),
        "outcome_flat": masked_mean(flat, tasks > 0),
    }

"""What training changes, and the optimizer that changes it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import struct


@struct.dataclass
class TrainState:
    """params: the policy (or the critic). opt_state: of `optimizer`. updates: optimizer steps taken, int32.
    critic: the state of the critic beside a policy, None for methods without one."""

    params: dict
    opt_state: optax.OptState
    updates: jax.Array
    critic: TrainState | None = None


def optimizer(
    *, lr: float, warmup: int, weight_decay: float, clip_norm: float, b2: float
) -> optax.GradientTransformation:
    """AdamW behind a global norm clip; the rate rises linearly over `warmup` updates and then stays."""
    schedule = optax.linear_schedule(lr / (warmup + 1), lr, warmup) if warmup else lr
    return optax.chain(optax.clip_by_global_norm(clip_norm), optax.adamw(schedule, b2=b2, weight_decay=weight_decay))


def new_state(params, tx: optax.GradientTransformation) -> TrainState:
    """A fresh optimizer around given parameters (copied, as the update donates its state)."""
    params = jax.tree.map(jnp.array, params)
    return TrainState(params, tx.init(params), jnp.zeros((), jnp.int32))

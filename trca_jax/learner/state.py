"""What training changes, and the optimizer that changes it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from jax.sharding import Mesh

from trca_jax.policy.sharding import replicated


@struct.dataclass
class TrainState:
    """params: the policy (or the critic). opt_state: of `optimizer`. updates: steps of the optimizer, int32.
    critic: the state of the critic beside a policy, None for methods without one."""

    params: dict
    opt_state: optax.OptState
    updates: jax.Array
    critic: TrainState | None = None


def optimizer(
    *, lr: float, warmup: int, weight_decay: float, clip_norm: float, b2: float
) -> optax.GradientTransformation:
    """AdamW behind a global norm clip; the rate rises linearly over `warmup` updates and then stays.

    A step whose gradient holds a NaN or an infinity changes nothing but the counts of `optax.ApplyIfFiniteState`.
    """
    schedule = optax.linear_schedule(lr / (warmup + 1), lr, warmup) if warmup else lr
    adamw = optax.adamw(schedule, b2=b2, weight_decay=weight_decay)
    chain = optax.chain(optax.clip_by_global_norm(clip_norm), adamw)
    return optax.apply_if_finite(chain, max_consecutive_errors=np.iinfo(np.int32).max)


def state_shardings(tx: optax.GradientTransformation, params, mesh: Mesh) -> TrainState:
    """Where a fresh state around these parameters lives: moments as their parameters, all else on every device.

    params: arrays on the mesh (or shapes with their shardings).
    """
    whole = replicated(mesh)
    own = jax.tree.map(lambda x: x.sharding, params)
    # zeros do not depend on data, so a compiled init alone would put all moments on one device.
    moments = optax.tree.map_params(
        tx, lambda _, place: place, jax.eval_shape(tx.init, params), own, transform_non_params=lambda _: whole
    )
    return TrainState(own, moments, whole)


def new_state(params, tx: optax.GradientTransformation, mesh: Mesh | None = None) -> TrainState:
    """A fresh optimizer around given parameters (copied, as the update donates its state).

    mesh: where the parameters lie already, None for one device.
    """

    def init(params):
        return TrainState(jax.tree.map(jnp.copy, params), tx.init(params), jnp.zeros((), jnp.int32))

    return jax.jit(init, out_shardings=None if mesh is None else state_shardings(tx, params, mesh))(params)

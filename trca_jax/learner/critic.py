"""The critic of PPO: a second model of the policy's architecture with one number as its output."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from trca_jax.learner import losses
from trca_jax.learner.state import TrainState
from trca_jax.learner.update import accumulate, apply_gradient, token_advantages
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.qwen2 import Qwen2
from trca_jax.policy.sharding import replicated
from trca_jax.rollout.pack import TokenBatch


def critic_params(policy, mesh: Mesh | None = None) -> dict:
    """A critic that starts as the policy's body and values everything at 0."""
    value = jnp.zeros(policy["embedding"].shape[1], jnp.float32)
    return {"body": policy, "value": value if mesh is None else jax.device_put(value, replicated(mesh))}


def token_values(config: Qwen2Config, params, batch: TokenBatch) -> jax.Array:
    """V of every token given the tokens before it, [B, L] float32; the first token of a row has 0."""
    positions = jnp.broadcast_to(jnp.arange(batch.tokens.shape[1]), batch.tokens.shape)
    hidden, _ = Qwen2(config).apply({"params": params["body"]}, batch.tokens, positions)
    return jnp.pad(hidden[:, :-1].astype(jnp.float32) @ params["value"], ((0, 0), (1, 0)))


def make_critic_update(
    config: Qwen2Config,
    tx: optax.GradientTransformation,
    *,
    clip: float,
    micro_rows: int,
    shardings: TrainState | None = None,
) -> Callable[[TrainState, TokenBatch, jax.Array, jax.Array], tuple[TrainState, dict[str, jax.Array]]]:
    """update(critic, batch, old [R, T, A], returns [R, T, A]) -> (critic, metrics), one step towards the returns.

    loss = mean over the response tokens of `value_loss`, clip its ε around the values that the returns were made with.
    shardings: of the state, None for one device.
    """

    def update(state: TrainState, batch: TokenBatch, old, returns):
        size = losses.counts(batch.response_mask)

        def loss_fn(params, rows):
            values = token_values(config, params, rows)
            old_values, targets = token_advantages(rows, old), token_advantages(rows, returns)
            loss = losses.value_loss(values, old_values, targets, clip)
            weights = losses.token_weights(rows.response_mask, "token-mean", *size)
            parts = {
                "value_loss": losses.weighted_sum(loss, weights),
                "value_mean": losses.weighted_sum(values, weights),
            }
            return parts["value_loss"], parts

        grads, metrics = accumulate(config, loss_fn, state.params, batch, micro_rows)
        return apply_gradient(tx, state, grads), metrics

    return jax.jit(
        update, donate_argnums=0, out_shardings=None if shardings is None else (shardings, shardings.updates)
    )

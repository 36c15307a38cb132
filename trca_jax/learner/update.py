"""The PPO update: one compiled step over micro-batches, losses normalised by the tokens of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Sharding

from trca_jax.learner import losses
from trca_jax.learner.state import TrainState
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.head import token_logp
from trca_jax.policy.qwen2 import Qwen2, output_embedding
from trca_jax.policy.sharding import constrain
from trca_jax.rollout.pack import TokenBatch


@dataclass(frozen=True)
class PPOSettings:
    """clip, clip_high: ε below and above 1 (clip_high None: the same). dual_clip c. ratio: 'token', or 'sequence' as in
    GSPO (without dual clip, and meant for aggregation 'seq-mean-token-mean'). aggregation: of every loss. kl: weight of
    the estimate kl_kind against the start policy. entropy: its bonus. temperature: of sampling, and so of every
    log-probability. micro_rows: rows of one forward pass. tokens: 'action' or 'response', the tokens that carry the
    advantage (KL and entropy take the whole response).
    """

    clip: float = 0.2
    clip_high: float | None = None
    dual_clip: float = 3.0
    ratio: str = "token"
    aggregation: str = "token-mean"
    kl: float = 0.01
    kl_kind: str = "k3"
    entropy: float = 0.001
    temperature: float = 1.0
    micro_rows: int = 8
    tokens: str = "action"

    def __post_init__(self):
        high = self.clip if self.clip_high is None else self.clip_high
        if not (0 < self.clip < 1 and high > 0) or self.dual_clip <= 1:
            raise ValueError(
                f"ppo.clip {self.clip} must be in (0, 1), ppo.clip_high {high} above 0, ppo.dual_clip "
                f"{self.dual_clip} above 1"
            )
        if min(self.kl, self.entropy) < 0 or self.temperature <= 0 or self.micro_rows < 1:
            raise ValueError(
                f"ppo: kl {self.kl} and entropy {self.entropy} must be >= 0, temperature {self.temperature} > 0, "
                f"micro_rows {self.micro_rows} >= 1"
            )
        for name, choices in (
            ("tokens", ("action", "response")),
            ("ratio", ("token", "sequence")),
            ("aggregation", losses.AGGREGATIONS),
            ("kl_kind", losses.KL_ESTIMATORS),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"ppo.{name} {getattr(self, name)!r} is unknown, expected one of {choices}")


def batch_logp(config: Qwen2Config, params, batch: TokenBatch, temperature: float):
    """log π and entropy of the scored tokens given the tokens before them, [B, L]; 0, 0 elsewhere, and at a row's first
    token."""
    shape = batch.tokens.shape
    positions = jnp.broadcast_to(jnp.arange(shape[1]), shape)
    hidden, _ = Qwen2(config).apply({"params": params}, batch.tokens, positions)
    at = positions[:, 1:] if batch.scored is None else batch.scored

    def take(x, at):
        return jnp.take_along_axis(x, at.reshape(*at.shape, *[1] * (x.ndim - 2)), axis=1, mode="clip")

    allowed = None if batch.allowed is None else take(batch.allowed, at)
    out = token_logp(
        take(hidden, at - 1), output_embedding(config, params), take(batch.tokens, at), temperature, allowed
    )
    rows = jnp.arange(shape[0])[:, None]
    return tuple(jnp.zeros(shape, x.dtype).at[rows, at].set(x, mode="drop") for x in out)


def make_scorer(config: Qwen2Config, *, temperature: float, micro_rows: int, out: Sharding | None = None):
    """score(params, batch) -> log π [B, L] of the scored tokens, micro-batch by micro-batch, compiled.

    out: where the result goes on a mesh.
    """

    def score(params, batch: TokenBatch):
        one = lambda rows: batch_logp(config, params, rows, temperature)[0]  # noqa: E731
        return jax.lax.map(one, _split(config, batch, micro_rows)).reshape(batch.tokens.shape)

    return jax.jit(score, out_shardings=out)


def token_advantages(batch: TokenBatch, advantage: jax.Array) -> jax.Array:
    """The advantage of every token [B, L]: of its step from [R, T], or its own from [R, T, A response tokens]."""
    if advantage.ndim == 2:
        return advantage.reshape(-1)[batch.transition]
    return advantage.reshape(-1, advantage.shape[2])[batch.transition, batch.place]


def _split(config: Qwen2Config, batch, micro_rows: int):
    """[B, ...] to [B / micro_rows, micro_rows, ...], the rows of every micro-batch spread over the mesh."""
    shape = lambda x: x.reshape(-1, micro_rows, *x.shape[1:])  # noqa: E731
    spread = lambda x: constrain(x, config.rules, "layers", "batch", *["length"] * (x.ndim - 2))  # noqa: E731
    return jax.tree.map(lambda x: spread(shape(x)), batch)


def accumulate(config: Qwen2Config, loss_fn: Callable, params, batch, micro_rows: int):
    """Gradient and metrics of loss_fn(params, rows) -> (loss, dict), summed over micro-batches of rows."""
    micro = _split(config, batch, micro_rows)
    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(jax.grad(loss_fn, has_aux=True), params, _first(micro)))

    def add(carry, rows):
        return jax.tree.map(jnp.add, carry, jax.grad(loss_fn, has_aux=True)(params, rows)), None

    return jax.lax.scan(add, zero, micro)[0]


def _first(micro):
    return jax.tree.map(lambda x: x[0], micro)


def apply_gradient(tx: optax.GradientTransformation, state: TrainState, grads) -> TrainState:
    """One step of the optimizer."""
    changes, opt_state = tx.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, changes)
    return state.replace(params=params, opt_state=opt_state, updates=state.updates + 1)


def make_update(
    config: Qwen2Config, tx: optax.GradientTransformation, settings: PPOSettings, shardings: TrainState | None = None
) -> Callable[[TrainState, TokenBatch, jax.Array], tuple[TrainState, dict[str, jax.Array]]]:
    """update(state, batch, advantage [R, T] or [R, T, A]) -> (state, metrics); the old state's memory is reused.

    loss = agg(ℓ) − c_H·agg(H) + c_KL·agg(KL), ℓ over the loss tokens, H and KL over the response tokens. The counts of
    agg are those of the whole batch, so the split into micro-batches changes nothing. Rows must be a multiple of
    `micro_rows`. batch.reference_logp is needed, and the metric kl there, where settings.kl is above 0.
    shardings: of the state, None for one device. A step whose loss or gradient is not finite has a metric `skipped` of
    1 and only NaN as its gradient, which `state.optimizer` does not follow.
    """
    s = settings
    clips = {
        "clip_low": s.clip,
        "clip_high": s.clip if s.clip_high is None else s.clip_high,
        "dual_clip": s.dual_clip if s.ratio == "token" else None,
    }

    def masks(batch):
        return batch.action_mask if s.tokens == "action" else batch.response_mask, batch.response_mask

    def update(state: TrainState, batch: TokenBatch, advantage):
        sizes = [losses.counts(mask) for mask in masks(batch)]

        def loss_fn(params, rows):
            new, entropy = batch_logp(config, params, rows, s.temperature)
            target, response = masks(rows)
            w_target, w_response = (
                losses.token_weights(mask, s.aggregation, *size)
                for mask, size in zip((target, response), sizes, strict=True)
            )
            # Elsewhere new = -inf is possible (a token that was not allowed); it must not reach the gradient.
            new = jnp.where(response, new, 0.0)
            old = rows.behaviour_logp
            ratio = losses.token_ratio(new, old) if s.ratio == "token" else losses.sequence_ratio(new, old, target)
            loss, clipped = losses.policy_loss(ratio, token_advantages(rows, advantage), **clips)
            share = losses.token_weights(target, "token-mean", *sizes[0])
            parts = {
                "policy_loss": losses.weighted_sum(loss, w_target),
                "entropy": losses.weighted_sum(entropy, w_response),
                "clip_fraction": losses.weighted_sum(clipped, share),
                "approx_kl": losses.weighted_sum(old - new, losses.token_weights(response, "token-mean", *sizes[1])),
            }
            parts["loss"] = parts["policy_loss"] - s.entropy * parts["entropy"]
            if s.kl:
                kl = losses.kl_estimate(new, rows.reference_logp, s.kl_kind)
                parts["kl"] = losses.weighted_sum(kl, w_response)
                parts["loss"] += s.kl * parts["kl"]
            return parts["loss"], parts

        grads, metrics = accumulate(config, loss_fn, state.params, batch, s.micro_rows)
        metrics["grad_norm"] = optax.tree.norm(grads)
        finite = jnp.isfinite(metrics["loss"]) & jnp.isfinite(metrics["grad_norm"])
        metrics["skipped"] = 1.0 - finite
        grads = jax.tree.map(lambda x: jnp.where(finite, x, jnp.nan), grads)  # the optimizer skips these
        return apply_gradient(tx, state, grads), metrics

    return jax.jit(
        update, donate_argnums=0, out_shardings=None if shardings is None else (shardings, shardings.updates)
    )

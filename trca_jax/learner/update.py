"""The PPO update: one compiled step over micro-batches, losses normalised by the tokens of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax

from trca_jax.learner.losses import kl_k3, masked_sum, policy_loss
from trca_jax.learner.state import TrainState
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.head import token_logp
from trca_jax.policy.qwen2 import Qwen2, output_embedding
from trca_jax.rollout.pack import TokenBatch


@dataclass(frozen=True)
class PPOSettings:
    """clip ε and dual clip c of the policy loss; kl: weight of k3 against the start policy; entropy: its bonus.
    temperature: of sampling, and so of every log-probability. micro_rows: rows of one forward pass.
    tokens: 'action' or 'response', the tokens that carry the advantage (KL and entropy take the whole response).
    """

    clip: float = 0.2
    dual_clip: float = 3.0
    kl: float = 0.01
    entropy: float = 0.001
    temperature: float = 1.0
    micro_rows: int = 8
    tokens: str = "action"

    def __post_init__(self):
        if not 0 < self.clip < 1 or self.dual_clip <= 1:
            raise ValueError(f"ppo.clip {self.clip} must be in (0, 1), ppo.dual_clip {self.dual_clip} above 1")
        if min(self.kl, self.entropy) < 0 or self.temperature <= 0 or self.micro_rows < 1:
            raise ValueError(
                f"ppo: kl {self.kl} and entropy {self.entropy} must be >= 0, temperature {self.temperature} > 0, "
                f"micro_rows {self.micro_rows} >= 1"
            )
        if self.tokens not in ("action", "response"):
            raise ValueError(f"ppo.tokens {self.tokens!r} is unknown, expected 'action' or 'response'")


def batch_logp(config: Qwen2Config, params, batch: TokenBatch, temperature: float):
    """log π and entropy of every token given the tokens before it, [B, L]; the first token of a row has 0, 0."""
    positions = jnp.broadcast_to(jnp.arange(batch.tokens.shape[1]), batch.tokens.shape)
    hidden, _ = Qwen2(config).apply({"params": params}, batch.tokens, positions)
    allowed = None if batch.allowed is None else batch.allowed[:, 1:]
    out = token_logp(hidden[:, :-1], output_embedding(config, params), batch.tokens[:, 1:], temperature, allowed)
    return tuple(jnp.pad(x, ((0, 0), (1, 0))) for x in out)


def make_update(
    config: Qwen2Config, tx: optax.GradientTransformation, settings: PPOSettings
) -> Callable[[TrainState, dict, TokenBatch, jax.Array], tuple[TrainState, dict[str, jax.Array]]]:
    """update(state, reference, batch, advantage [R, T]) -> (state, metrics); the old state's memory is reused.

    loss = Σ ℓ / #loss tokens − c_H · Σ H / #response tokens + c_KL · Σ KL / #response tokens, the counts taken over
    the whole batch, so the split into micro-batches changes nothing. Rows must be a multiple of `micro_rows`.
    """
    s = settings

    def loss_fn(params, reference, batch, advantage, counts):
        new, entropy = batch_logp(config, params, batch, s.temperature)
        frozen, _ = batch_logp(config, reference, batch, s.temperature)
        response = batch.response_mask
        target = batch.action_mask if s.tokens == "action" else response
        # Elsewhere new = -inf is possible (a token that was not allowed); such places must not reach the gradient.
        new, frozen = (jnp.where(response, x, 0.0) for x in (new, frozen))
        loss, clipped = policy_loss(
            new, batch.behaviour_logp, advantage.reshape(-1)[batch.transition], clip=s.clip, dual_clip=s.dual_clip
        )
        parts = {
            "policy_loss": masked_sum(loss, target) / counts["target"],
            "entropy": masked_sum(entropy, response) / counts["response"],
            "kl": masked_sum(kl_k3(new, jax.lax.stop_gradient(frozen)), response) / counts["response"],
            "clip_fraction": masked_sum(clipped, target) / counts["target"],
            "approx_kl": masked_sum(batch.behaviour_logp - new, response) / counts["response"],
        }
        return parts["policy_loss"] - s.entropy * parts["entropy"] + s.kl * parts["kl"], parts

    def counts_of(batch):
        target = batch.action_mask if s.tokens == "action" else batch.response_mask
        return {"target": jnp.maximum(target.sum(), 1), "response": jnp.maximum(batch.response_mask.sum(), 1)}

    def update(state: TrainState, reference, batch: TokenBatch, advantage):
        counts = counts_of(batch)
        micro = jax.tree.map(lambda x: x.reshape(-1, s.micro_rows, *x.shape[1:]), batch)

        def accumulate(carry, rows):
            out = jax.grad(loss_fn, has_aux=True)(state.params, reference, rows, advantage, counts)
            return jax.tree.map(jnp.add, carry, out), None

        parts = dict.fromkeys(("policy_loss", "entropy", "kl", "clip_fraction", "approx_kl"), jnp.zeros(()))
        zero = (jax.tree.map(jnp.zeros_like, state.params), parts)
        (grads, metrics), _ = jax.lax.scan(accumulate, zero, micro)
        changes, opt_state = tx.update(grads, state.opt_state, state.params)
        metrics["grad_norm"] = optax.tree.norm(grads)
        params = optax.apply_updates(state.params, changes)
        return TrainState(params, opt_state, state.updates + 1), metrics

    return jax.jit(update, donate_argnums=0)

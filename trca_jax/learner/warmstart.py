"""The warm start: supervised learning on noisy demonstrations, on observations as much as on actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax

from trca_jax.learner.state import TrainState, new_state
from trca_jax.learner.update import accumulate, apply_gradient, batch_logp
from trca_jax.policy.config import Qwen2Config
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.pack import TokenBatch, pack


@dataclass(frozen=True)
class WarmstartSettings:
    """steps: optimizer steps. rows: episodes of one step. lr: peak rate, after a short rise it falls to a tenth along a
    cosine. observation_weight: of the loss on tokens that the world wrote (on the policy's own it is 1)."""

    steps: int
    rows: int = 32
    lr: float = 3e-3
    observation_weight: float = 0.5


def batches(episodes: Sequence[Episode], rows: int, max_steps: int, seed: int) -> Iterator[TokenBatch]:
    """Endless shuffled batches of `rows` episodes; rows of one batch have similar lengths, so little is padding.

    Raises ValueError for fewer episodes than rows.
    """
    if len(episodes) < rows:
        raise ValueError(f"{len(episodes)} demonstrations do not fill a batch of {rows}; play more or lower the rows")
    rng = np.random.default_rng(seed)
    sizes = np.array([sum(len(s.prompt_ids) + len(s.response_ids) for s in e.steps) for e in episodes])
    while True:
        order = np.argsort(sizes + rng.uniform(0, 64, len(sizes)), kind="stable")
        chunks = [order[i : i + rows] for i in range(0, len(order) - rows + 1, rows)]
        for i in rng.permutation(len(chunks)):
            batch = pack([episodes[j] for j in chunks[i]], max_steps=max_steps, multiple=rows)
            yield batch.replace(scored=None)  # observations are learnt too


def warm_start(
    config: Qwen2Config, params, data: Iterator[TokenBatch], settings: WarmstartSettings,
    report: Callable[[int, float, float], None] = lambda step, action_loss, loss: None,
):  # fmt: skip
    """Trains `params` by weighted cross entropy, Σ w·(−log π) / Σ w in each part of a batch; returns the new ones.

    report(step, mean loss of action tokens, weighted loss) is called every 20 steps.
    """
    s = settings
    schedule = optax.warmup_cosine_decay_schedule(0.0, s.lr, max(s.steps // 20, 1), max(s.steps, 2), s.lr / 10)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.98, weight_decay=0.01))

    def loss_fn(params, batch: TokenBatch):
        logp, _ = batch_logp(config, params, batch, 1.0)
        real = (batch.segment_ids > 0) & (jnp.arange(logp.shape[1]) > 0)
        weight = jnp.where(batch.response_mask, 1.0, s.observation_weight) * real
        action = jnp.sum(-logp * batch.response_mask) / jnp.maximum(batch.response_mask.sum(), 1)
        loss = jnp.sum(-logp * weight) / jnp.maximum(weight.sum(), 1)
        return loss, {"loss": loss, "action": action}

    @jax.jit
    def step(state: TrainState, batch: TokenBatch):
        rows = len(batch.tokens)
        micro = math.gcd(8, rows)
        grads, losses = jax.tree.map(
            lambda x: x * micro / rows, accumulate(config, loss_fn, state.params, batch, micro)
        )
        return apply_gradient(tx, state, grads), losses

    state = new_state(params, tx)
    for i, batch in zip(range(s.steps), data, strict=False):
        state, losses = step(state, batch)
        if i % 20 == 19 or i + 1 == s.steps:
            report(i + 1, float(losses["action"]), float(losses["loss"]))
    return state.params

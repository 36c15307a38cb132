"""PPO: generalised advantage estimation over tokens, with the values of a critic."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from trca_jax.credit.diagnostics import diagnose
from trca_jax.credit.outcome import penalty, row_scores
from trca_jax.credit.reduce import keep, masked_mean, step_mask
from trca_jax.credit.returns import gae
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class PPOCreditSettings:
    """gamma, lam: a token. span: 'row' makes every step an episode of its own that ends in the rollout's total reward
    (agent recipes), 'trajectory' runs through all steps and pays each its own reward (search recipes).
    invalid_penalty: as in `GRPOSettings`."""

    gamma: float = 1.0
    lam: float = 1.0
    span: Literal["row", "trajectory"] = "row"
    invalid_penalty: float = 0.0

    def __post_init__(self):
        check_number("gamma", self.gamma, 0, 1)
        check_number("lam", self.lam, 0, 1)
        check_choice("span", self.span, ("row", "trajectory"))
        check_number("invalid_penalty", self.invalid_penalty)


def token_credit(batch: CreditBatch, rewards_rt: Float[Array, "R T"], *, gamma: float, lam: float, span: str) -> Credit:
    """Whitened GAE of rewards that stand at the last token of each step; a token's value is the critic's before it."""
    rollouts, steps, tokens = batch.token_values.shape
    mask_rt = step_mask(batch.length, steps)
    mask = jnp.asarray(batch.token_mask).astype(bool) & mask_rt[:, :, None]
    last = mask & (jnp.cumsum(mask[:, :, ::-1], axis=2)[:, :, ::-1] == 1)
    shape = (rollouts * steps, tokens) if span == "row" else (rollouts, steps * tokens)
    rewards = jnp.where(last, rewards_rt[:, :, None], 0.0).reshape(shape)
    values = keep(batch.token_values, mask).reshape(shape)
    advantage, returns = (
        keep(x.reshape(mask.shape), mask) for x in gae(rewards, values, mask.reshape(shape), gamma, lam)
    )
    mean_rt = masked_mean(advantage, mask, axis=2)
    credit = outcome_credit(mean_rt, masked_mean(mean_rt, mask_rt, axis=1), rewards_rt, diagnose(batch))
    return dataclasses.replace(credit, token_advantage=advantage, token_returns=returns)


def ppo(batch: CreditBatch, settings: PPOCreditSettings) -> Credit:
    """Token advantages, whitened over all response tokens of the batch; `advantage` is their mean a step.

    δ_l = r_l + γ·V_{l+1} − V_l,  A_l = δ_l + γλ·A_{l+1};  value targets A + V (before whitening).
    batch: see `CreditBatch`; reads r_env, length, valid, token_values and token_mask. Source: methods 3.1, 9.1.
    """
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    if settings.span == "row":
        rewards_rt = row_scores(batch, settings.invalid_penalty)
    else:
        rewards_rt = keep(batch.r_env, mask_rt) - penalty(batch, mask_rt, settings.invalid_penalty)
    return token_credit(batch, rewards_rt, gamma=settings.gamma, lam=settings.lam, span=settings.span)

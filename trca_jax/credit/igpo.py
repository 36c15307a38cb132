"""IGPO: every turn by how much likelier it made the gold answer, the last one by its own score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from trca_jax.credit.diagnostics import diagnose
from trca_jax.credit.reduce import group_normalise, keep, masked_mean, step_mask
from trca_jax.credit.returns import discounted_returns
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class IGPOSettings:
    """gain: difference of probabilities or of their logarithms. normalise: 'separate' compares final scores among
    themselves and gains among themselves, 'joint' all of a task together. norm: divide by the std or only subtract the
    mean. gamma: discount a turn. final_weight, gain_weight: applied after the statistics. floor: added to the variance
    (ddof 0), eps: to the std."""

    gain: Literal["prob_diff", "log_prob_diff"] = "log_prob_diff"
    normalise: Literal["separate", "joint"] = "separate"
    norm: Literal["mean_std", "mean"] = "mean_std"
    gamma: float = 1.0
    final_weight: float = 1.0
    gain_weight: float = 1.0
    floor: float = 1e-8
    eps: float = 1e-6

    def __post_init__(self):
        check_choice("gain", self.gain, ("prob_diff", "log_prob_diff"))
        check_choice("normalise", self.normalise, ("separate", "joint"))
        check_choice("norm", self.norm, ("mean_std", "mean"))
        check_number("gamma", self.gamma, 0, 1)
        for name in ("final_weight", "gain_weight", "floor", "eps"):
            check_number(name, getattr(self, name))


def information_gain(gold_logp: Float[Array, "... T+1"], gain: str) -> Float[Array, "... T"]:
    """p[t+1] − p[t] of p = exp(gold_logp), or the difference of gold_logp itself ('log_prob_diff')."""
    return jnp.diff(jnp.exp(gold_logp) if gain == "prob_diff" else gold_logp, axis=-1)


def turn_advantage(
    rewards_rt: Float[Array, "R T"], final_rt: Bool[Array, "R T"], mask_rt: Bool[Array, "R T"], group, s: IGPOSettings
) -> Float[Array, "R T"]:
    """Σ_{j≥t} γ^(j−t)·z_j, z the reward standardised inside its task; a turn of reward 0 is a turn like any other.

    rewards_rt: of the turns. final_rt: the last turn of each rollout. group [R]: its task.
    """

    def standardise(among_rt):
        return group_normalise(
            rewards_rt, group, among_rt & mask_rt, len(mask_rt), ddof=0, eps=s.eps, floor=s.floor,
            use_std=s.norm == "mean_std",
        )  # fmt: skip

    if s.normalise == "separate":
        z_rt = jnp.where(final_rt, standardise(final_rt), standardise(~final_rt))
    else:
        z_rt = standardise(mask_rt)
    z_rt = keep(z_rt, mask_rt)
    return discounted_returns(z_rt * jnp.where(final_rt, s.final_weight, s.gain_weight), mask_rt, s.gamma)


def igpo(batch: CreditBatch, settings: IGPOSettings) -> Credit:
    """The turn advantage of rewards IG[t] = p[t+1] − p[t] before the last turn and Σ_t r_env (the answer's F1) at it.

    p[t] = exp(gold_logp[t]), the geometric mean probability of the gold answer's tokens before turn t.
    batch: see `CreditBatch`; reads r_env, length, group and gold_logp. Source: methods 7.
    """
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    final_rt = jnp.arange(mask_rt.shape[1]) == jnp.asarray(batch.length)[:, None] - 1
    gold = jnp.where(step_mask(jnp.asarray(batch.length), mask_rt.shape[1] + 1), jnp.asarray(batch.gold_logp), 0.0)
    total_r = keep(batch.r_env, mask_rt).sum(axis=1)
    rewards_rt = jnp.where(final_rt, total_r[:, None], information_gain(gold, settings.gain))
    rewards_rt = keep(rewards_rt, mask_rt)
    advantage_rt = turn_advantage(rewards_rt, final_rt, mask_rt, batch.group, settings)
    return outcome_credit(advantage_rt, masked_mean(advantage_rt, mask_rt, axis=1), rewards_rt, diagnose(batch))

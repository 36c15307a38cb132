"""GiGPO: the rollout against its task, plus the discounted return of each step against steps in the same state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp

from trca_jax.credit.diagnostics import diagnose_contexts
from trca_jax.credit.outcome import penalty, row_scores, task_ids, unit_weights
from trca_jax.credit.reduce import group_normalise, keep, masked_mean, step_mask
from trca_jax.credit.returns import discounted_returns
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class GiGPOSettings:
    """gamma: discount a step. omega: weight of the step part. norm: of both parts, divide by the std or only subtract
    the mean. similarity: how `context` was made, 0 from equal observations, else by `similar_groups` with this
    threshold (0.9 for search). stat_unit, invalid_penalty, eps: as in `GRPOSettings`; the penalty also enters the
    step's own return."""

    gamma: float = 0.95
    omega: float = 1.0
    norm: Literal["mean_std", "mean"] = "mean_std"
    similarity: float = 0.0
    stat_unit: Literal["row", "trajectory"] = "row"
    invalid_penalty: float = 0.0
    eps: float = 1e-6

    def __post_init__(self):
        check_number("gamma", self.gamma, 0, 1)
        check_number("omega", self.omega)
        check_number("similarity", self.similarity, 0, 1)
        check_choice("norm", self.norm, ("mean_std", "mean"))
        check_choice("stat_unit", self.stat_unit, ("row", "trajectory"))
        check_number("invalid_penalty", self.invalid_penalty)
        check_number("eps", self.eps)


def gigpo(batch: CreditBatch, settings: GiGPOSettings) -> Credit:
    """A = A_E + ω·A_S: A_E the advantage of GRPO, A_S the standardised G − penalty over the steps of one context.

    G[r,t] = r_env + γ·G[r,t+1]; the penalty is taken off the step's own return only. A single step: A_E raw, A_S 0.
    batch: see `CreditBatch`; reads r_env, length, group, context (anchor state) and valid. Source: methods 4.
    """
    rollouts, steps = batch.r_env.shape
    mask_rt = step_mask(batch.length, steps)
    rules = {"ddof": 1, "eps": settings.eps, "use_std": settings.norm == "mean_std"}
    weights_rt = unit_weights(mask_rt, settings.stat_unit)
    scores_rt = row_scores(batch, settings.invalid_penalty)
    episode_rt = group_normalise(scores_rt, task_ids(batch, mask_rt), weights_rt, rollouts, singleton="raw", **rules)
    episode_rt = keep(episode_rt, mask_rt)

    returns_rt = discounted_returns(batch.r_env, mask_rt, settings.gamma)
    returns_rt = returns_rt - penalty(batch, mask_rt, settings.invalid_penalty)
    context_rt = jnp.where(mask_rt, batch.context, -1)
    step_rt = group_normalise(returns_rt, context_rt, mask_rt, rollouts * steps, **rules)

    advantage_rt = episode_rt + settings.omega * step_rt
    episode_r = masked_mean(episode_rt, mask_rt, axis=1)
    return outcome_credit(advantage_rt, episode_r, returns_rt, diagnose_contexts(batch), step=step_rt)

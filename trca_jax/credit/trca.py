"""TRCA: rubric rewards of each transition become returns that are compared inside one decision context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp

from trca_jax.credit import rewards
from trca_jax.credit.diagnostics import diagnose_contexts
from trca_jax.credit.outcome import penalty, task_ids
from trca_jax.credit.reduce import group_normalise, keep, masked_mean, step_mask
from trca_jax.credit.returns import discounted_returns
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch


@dataclass(frozen=True, kw_only=True)
class TRCASettings:
    """The paper's values, and where it is silent the choices of methods 10.7.

    lam: share of the breakthrough reward. gamma: discount a step. evidence, invalidity, execution: budgets, shared by
    the items of a category or given to each item (budget_mode). terminal_scale: multiplies r_env in the return.
    episode_value: A_E compares the outcome (success), the score (Σ_t r_env) or the sum of all rewards. norm: divide by
    the std or only subtract the mean. ddof, eps: of every std. invalid_penalty: taken off the return of a step whose
    action could not be parsed. episode_weight, step_weight: multiply A_E and A_S; 0 leaves one out.
    """

    lam: float = 0.8
    gamma: float = 0.95
    evidence: float = 1.0
    invalidity: float = 1.0
    execution: float = 1.0
    budget_mode: Literal["category", "item"] = "category"
    terminal_scale: float = 1.0
    episode_value: Literal["outcome", "score", "return"] = "outcome"
    norm: Literal["mean_std", "mean"] = "mean_std"
    ddof: int = 1
    eps: float = 1e-6
    invalid_penalty: float = 0.0
    episode_weight: float = 1.0
    step_weight: float = 1.0

    def __post_init__(self):
        check_number("lam", self.lam, 0, 1)
        check_number("gamma", self.gamma, 0, 1)
        numbers = ("evidence", "invalidity", "execution", "terminal_scale", "eps", "invalid_penalty")
        for name in (*numbers, "episode_weight", "step_weight"):
            check_number(name, getattr(self, name))
        check_choice("budget_mode", self.budget_mode, ("category", "item"))
        check_choice("episode_value", self.episode_value, ("outcome", "score", "return"))
        check_choice("norm", self.norm, ("mean_std", "mean"))
        check_choice("ddof", self.ddof, (0, 1))


def trca(batch: CreditBatch, settings: TRCASettings) -> Credit:
    """A[r,t] = A_E[r] + A_S[r,t], from outcomes inside a task and completion returns inside a context.

    G[r,t] = r_env + r_TRCA + γ·G[r,t+1];  A_E standardises the outcome over the rollouts of a task, A_S standardises G
    over all steps of one context; each is 0 for fewer than two members or equal values.
    batch: see `CreditBatch`; reads all but next_context and the optional signals. Source: methods 10.2, 10.3.
    """
    rollouts, steps, _ = batch.judgement.shape
    mask_rt = step_mask(batch.length, steps)
    judgement_rtj = keep(batch.judgement, mask_rt[:, :, None])
    weight_rj = rewards.item_weights(
        batch.item_category,
        batch.item_mask,
        evidence=settings.evidence,
        invalidity=settings.invalidity,
        execution=settings.execution,
        per_item=settings.budget_mode == "item",
    )
    foundational_rt = rewards.foundational_reward(judgement_rtj, weight_rj)
    breakthrough_rt = rewards.breakthrough_reward(judgement_rtj, weight_rj)
    rubric_rt = rewards.fuse(foundational_rt, breakthrough_rt, settings.lam)

    total_rt = settings.terminal_scale * keep(batch.r_env, mask_rt) + rubric_rt
    returns_rt = discounted_returns(total_rt, mask_rt, settings.gamma)
    returns_rt = returns_rt - penalty(batch, mask_rt, settings.invalid_penalty)

    rules = {"ddof": settings.ddof, "eps": settings.eps, "use_std": settings.norm == "mean_std"}
    value_r = {
        "outcome": batch.outcome,
        "score": keep(batch.r_env, mask_rt).sum(axis=1),
        "return": total_rt.sum(axis=1),
    }[settings.episode_value]
    episode_r = group_normalise(value_r, task_ids(batch, mask_rt), mask_rt[:, 0], rollouts, **rules)
    step_rt = group_normalise(
        returns_rt,
        jnp.where(mask_rt, batch.context, -1),
        mask_rt,
        rollouts * steps,
        **rules,
    )
    return Credit(
        advantage=keep(settings.episode_weight * episode_r[:, None] + settings.step_weight * step_rt, mask_rt),
        episode=episode_r,
        step=step_rt,
        foundational=foundational_rt,
        breakthrough=breakthrough_rt,
        rubric=rubric_rt,
        returns=returns_rt,
        diagnostics=diagnose_contexts(batch)
        | {
            "foundational_mean": masked_mean(foundational_rt, mask_rt),
            "breakthrough_mean": masked_mean(breakthrough_rt, mask_rt),
        },
    )

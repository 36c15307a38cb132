"""TRCA: rubric rewards of each transition become returns that are compared inside one decision context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trca_jax.credit import rewards
from trca_jax.credit.comparison import ComparisonSettings, compare
from trca_jax.credit.diagnostics import diagnose_contexts
from trca_jax.credit.reduce import keep, masked_mean, step_mask
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch


@dataclass(frozen=True, kw_only=True)
class TRCASettings(ComparisonSettings):
    """Those of the comparison, and of the rubric reward.

    lam: share of the breakthrough reward. evidence, invalidity, execution: budgets, shared by the items of a category
    or given to each item (budget_mode).
    """

    lam: float = 0.8
    evidence: float = 1.0
    invalidity: float = 1.0
    execution: float = 1.0
    budget_mode: Literal["category", "item"] = "category"

    def __post_init__(self):
        super().__post_init__()
        check_number("lam", self.lam, 0, 1)
        for name in ("evidence", "invalidity", "execution"):
            check_number(name, getattr(self, name))
        check_choice("budget_mode", self.budget_mode, ("category", "item"))


def trca(batch: CreditBatch, settings: TRCASettings) -> Credit:
    """A[r,t] = A_E[r] + A_S[r,t] with r_TRCA as the reward of a transition; see `compare`.

    G[r,t] = r_env + r_TRCA + γ·G[r,t+1];  A_E standardises the outcome over the rollouts of a task, A_S standardises G
    over all steps of one context; each is 0 for fewer than two members or equal values.
    batch: see `CreditBatch`; reads all but next_context and the optional signals. Source: methods 10.2, 10.3.
    """
    mask_rt = step_mask(batch.length, batch.judgement.shape[1])
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
    found = compare(batch, rubric_rt, mask_rt, settings)
    return Credit(
        advantage=found.advantage,
        episode=found.episode,
        step=found.step,
        foundational=foundational_rt,
        breakthrough=breakthrough_rt,
        rubric=rubric_rt,
        returns=found.returns,
        diagnostics=diagnose_contexts(batch)
        | {
            "foundational_mean": masked_mean(foundational_rt, mask_rt),
            "breakthrough_mean": masked_mean(breakthrough_rt, mask_rt),
        },
    )

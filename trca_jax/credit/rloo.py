"""RLOO: the outcome of a rollout against the mean of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trca_jax.credit.diagnostics import diagnose
from trca_jax.credit.outcome import row_scores, task_ids, unit_weights
from trca_jax.credit.reduce import keep, leave_one_out, masked_mean, step_mask
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class RLOOSettings:
    """stat_unit, invalid_penalty, singleton: as in `GRPOSettings`. With 'row' a step's baseline holds its own rollout's
    other steps, as in the public code."""

    stat_unit: Literal["row", "trajectory"] = "row"
    invalid_penalty: float = 0.0
    singleton: Literal["raw", "zero"] = "raw"

    def __post_init__(self):
        check_choice("stat_unit", self.stat_unit, ("row", "trajectory"))
        check_number("invalid_penalty", self.invalid_penalty)
        check_choice("singleton", self.singleton, ("raw", "zero"))


def rloo(batch: CreditBatch, settings: RLOOSettings) -> Credit:
    """A[r,t] = (s − mean_task)·n/(n−1), n steps (or rollouts) of the task, s = Σ_t r_env − penalty.

    batch: see `CreditBatch`; reads r_env, length, group and valid. Source: methods 3.2.
    """
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    scores_rt = row_scores(batch, settings.invalid_penalty)
    weights_rt = unit_weights(mask_rt, settings.stat_unit)
    advantage_rt = leave_one_out(
        scores_rt, task_ids(batch, mask_rt), weights_rt, num_segments=mask_rt.shape[0], singleton=settings.singleton
    )
    advantage_rt = keep(advantage_rt, mask_rt)
    return outcome_credit(advantage_rt, masked_mean(advantage_rt, mask_rt, axis=1), scores_rt, diagnose(batch))

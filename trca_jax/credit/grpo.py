"""GRPO: the outcome of a rollout against the other rollouts of its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trca_jax.credit.diagnostics import diagnose
from trca_jax.credit.outcome import row_scores, task_ids, unit_weights
from trca_jax.credit.reduce import group_normalise, keep, masked_mean, step_mask
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class GRPOSettings:
    """stat_unit: what counts once in the statistics of a task, every step ('row', so long rollouts weigh more, as the
    public code does) or every rollout ('trajectory'). norm: divide by the std or only subtract the mean.
    invalid_penalty: taken off the score of a step whose action could not be parsed; 0 here for a like comparison of
    methods, 0.1 in the public code. singleton: what a task of one unit gives, its raw score or zero. eps: added to the
    std."""

    stat_unit: Literal["row", "trajectory"] = "row"
    norm: Literal["mean_std", "mean"] = "mean_std"
    invalid_penalty: float = 0.0
    singleton: Literal["raw", "zero"] = "raw"
    eps: float = 1e-6

    def __post_init__(self):
        check_choice("stat_unit", self.stat_unit, ("row", "trajectory"))
        check_choice("norm", self.norm, ("mean_std", "mean"))
        check_number("invalid_penalty", self.invalid_penalty)
        check_choice("singleton", self.singleton, ("raw", "zero"))
        check_number("eps", self.eps)


def grpo(batch: CreditBatch, settings: GRPOSettings) -> Credit:
    """A[r,t] = (s − mean_task)/(std_task + eps), s = Σ_t r_env − penalty; a task of one step: as `singleton` says.

    batch: see `CreditBatch`; reads r_env, length, group and valid. Source: methods 2.3 and 3.3.
    """
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    scores_rt = row_scores(batch, settings.invalid_penalty)
    advantage_rt = group_normalise(
        scores_rt,
        task_ids(batch, mask_rt),
        unit_weights(mask_rt, settings.stat_unit),
        num_segments=mask_rt.shape[0],
        ddof=1,
        eps=settings.eps,
        use_std=settings.norm == "mean_std",
        singleton=settings.singleton,
    )
    advantage_rt = keep(advantage_rt, mask_rt)
    return outcome_credit(advantage_rt, masked_mean(advantage_rt, mask_rt, axis=1), scores_rt, diagnose(batch))

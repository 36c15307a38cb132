"""PRM: TRCA with a process reward model in the rubric's place, whose score is the reward of a transition."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from trca_jax.credit.comparison import ComparisonSettings, compare
from trca_jax.credit.diagnostics import diagnose_contexts
from trca_jax.credit.reduce import keep, masked_mean, step_mask
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class PRMSettings(ComparisonSettings):
    """Those of the comparison, with TRCA's own defaults."""


def prm(batch: CreditBatch, settings: PRMSettings) -> Credit:
    """A[r,t] = A_E[r] + A_S[r,t] as TRCA's, with the model's score of the step in place of r_TRCA.

    G[r,t] = r_env + score + γ·G[r,t+1]. It is known where all scores from t on are there: a missing one is no reward of
    0, so the steps up to it take part in no statistic of G and their A_S is 0. A_E, from outcomes, stays theirs.
    Diagnostics: score_mean, over the steps that have one; unscored, the share of the real steps that have none, and
    unknown_returns, of those whose G is not known.
    batch: see `CreditBatch`; reads r_env, outcome, length, group, context, valid and step_score.
    """
    mask_rt = step_mask(batch.length, batch.r_env.shape[1])
    scored_rt = mask_rt & ~jnp.isnan(batch.step_score)
    known_rt = mask_rt & jax.lax.cummin((scored_rt | ~mask_rt).astype(int), axis=1, reverse=True).astype(bool)
    found = compare(batch, keep(batch.step_score, scored_rt), known_rt, settings)
    share = {"unscored": masked_mean(~scored_rt, mask_rt), "unknown_returns": masked_mean(~known_rt, mask_rt)}
    return outcome_credit(
        found.advantage,
        found.episode,
        jnp.where(known_rt, found.returns, 0.0),
        diagnose_contexts(batch) | {"score_mean": masked_mean(batch.step_score, scored_rt)} | share,
        step=found.step,
    )

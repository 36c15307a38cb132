"""HCAPO: the outcome, spread over the steps by how likely each response is once the final state is known."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from trca_jax.credit.diagnostics import diagnose
from trca_jax.credit.outcome import task_ids
from trca_jax.credit.reduce import group_normalise, keep, masked_mean, step_mask
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class HCAPOSettings:
    """temperature: of the hindsight probability. low, high: clip range of the ratio ρ. gamma: discount a step.
    omega: weight of the micro part. smoothing: α of Q′ = α·Q[t] + (1−α)·Q[t+1]; 1 is off (the public best run has 0.5).
    do_no_harm: no negative micro advantage in a successful rollout. eps: added to the stds; ddof 0."""

    temperature: float = 5.0
    low: float = 0.8
    high: float = 1.2
    gamma: float = 0.95
    omega: float = 1.0
    smoothing: float = 1.0
    do_no_harm: bool = True
    eps: float = 1e-6

    def __post_init__(self):
        check_number("temperature", self.temperature, 1e-6)
        check_number("low", self.low, 0, 1)
        check_number("high", self.high, 1)
        check_number("gamma", self.gamma, 0, 1)
        check_number("omega", self.omega)
        check_number("smoothing", self.smoothing, 0, 1)
        check_choice("do_no_harm", self.do_no_harm, (True, False))
        check_number("eps", self.eps)


def hcapo(batch: CreditBatch, settings: HCAPOSettings) -> Credit:
    """A = macro + ω·micro. macro standardises R(τ) = Σ_t r_env over the rollouts of a task, micro Q over all its steps.

    Q[r,t] = ρ·γ^(length−1−t)·R(τ);  ρ = clip(π/mean of the rollout's π, low, high);  π = exp(hindsight_logp/T_temp),
    hindsight_logp the mean log-probability of the response's tokens given the final state.
    batch: see `CreditBatch`; reads r_env, outcome, length, group and hindsight_logp. Source: methods 6.
    """
    rollouts, steps = batch.r_env.shape
    mask_rt = step_mask(batch.length, steps)
    total_r = keep(batch.r_env, mask_rt).sum(axis=1)
    hindsight_rt = keep(jnp.exp(keep(batch.hindsight_logp, mask_rt) / settings.temperature), mask_rt)
    mean_r = masked_mean(hindsight_rt, mask_rt, axis=1)
    ratio_rt = jnp.clip(hindsight_rt / jnp.where(mean_r > 0, mean_r, 1.0)[:, None], settings.low, settings.high)
    left_rt = jnp.asarray(batch.length)[:, None] - 1 - jnp.arange(steps)
    value_rt = keep(ratio_rt * settings.gamma ** jnp.maximum(left_rt, 0) * total_r[:, None], mask_rt)
    later_rt = jnp.where(left_rt > 0, jnp.roll(value_rt, -1, axis=1), value_rt)
    value_rt = keep(settings.smoothing * value_rt + (1 - settings.smoothing) * later_rt, mask_rt)

    rules = {"ddof": 0, "eps": settings.eps, "use_std": True}
    task_r = task_ids(batch, mask_rt)
    macro_r = group_normalise(total_r, task_r, mask_rt[:, 0], rollouts, **rules)
    micro_rt = keep(group_normalise(value_rt, task_r, mask_rt, rollouts, **rules), mask_rt)
    if settings.do_no_harm:
        won_r = jnp.asarray(batch.outcome) > 0
        micro_rt = jnp.where(won_r[:, None], jnp.maximum(micro_rt, 0), micro_rt)
    advantage_rt = keep(macro_r[:, None] + settings.omega * micro_rt, mask_rt)
    return outcome_credit(advantage_rt, macro_r, value_rt, diagnose(batch), step=micro_rt)

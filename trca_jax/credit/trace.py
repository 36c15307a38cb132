"""TRACE: the outcome against the task's rollouts, plus a temporal difference of how near the gold answer has come."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from trca_jax.credit.diagnostics import diagnose
from trca_jax.credit.outcome import task_ids
from trca_jax.credit.reduce import group_normalise, keep, step_mask
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class TRACESettings:
    """horizon: K tool turns that a turn's credit looks ahead (0: terminal term only). gamma: discount a turn.
    epsilon: added to −log p. terminal: λ_term, weight of the outcome at the last turns. outcome_weight, turn_weight: α
    of the two parts. use_std: A_out divides by the (population) std."""

    horizon: int = 3
    gamma: float = 0.8
    epsilon: float = 0.1
    terminal: float = 2.0
    outcome_weight: float = 1.0
    turn_weight: float = 0.2
    use_std: bool = True

    def __post_init__(self):
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or not 0 <= self.horizon <= 64:
            raise ValueError(f"horizon is {self.horizon!r}, expected a whole number in [0, 64]")
        check_number("gamma", self.gamma, 0, 1)
        check_number("epsilon", self.epsilon, 1e-9)
        for name in ("terminal", "outcome_weight", "turn_weight"):
            check_number(name, getattr(self, name))
        check_choice("use_std", self.use_std, (True, False))


def state_values(gold_logp: Float[Array, "... S"], epsilon: float) -> Float[Array, "... S"]:
    """V[k] = log(d[0]/d[k]), d = −gold_logp + ε: 0 at the start, larger where the gold answer has become likelier."""
    log_distance = jnp.log(epsilon - gold_logp)
    return log_distance[..., :1] - log_distance


def trace(batch: CreditBatch, settings: TRACESettings) -> Credit:
    """A = α_out·A_out + α_turn·r[t] at tool turns, α_out·A_out elsewhere (the answer).

    r[k] = Σ_{u=k..h} γ^(u−k)·δ_u / Σ γ^(u−k) + [h = n−1]·λ_term·γ^(n−k)·A_out;  δ_u = V[u+1] − V[u],
    h = min(k+K−1, n−1), n the rollout's tool turns, which come first. A_out standardises Σ_t r_env over the rollouts of
    a task, population std, 0 for equal values. Turn rewards are not compared between rollouts.
    batch: see `CreditBatch`; reads r_env, length, group, tool and gold_logp (of the frozen start policy).
    Source: methods 8.
    """
    s, steps = settings, batch.r_env.shape[1]
    mask_rt = step_mask(batch.length, steps)
    total_r = keep(batch.r_env, mask_rt).sum(axis=1)
    task_r = task_ids(batch, mask_rt)
    outcome_r = group_normalise(total_r, task_r, mask_rt[:, 0], mask_rt.shape[0], ddof=0, eps=0.0, use_std=s.use_std)
    tool_rt = mask_rt & jnp.asarray(batch.tool).astype(bool)
    turns_r = tool_rt.sum(axis=1)
    known = jnp.arange(steps + 1) <= turns_r[:, None]
    value = state_values(jnp.where(known, jnp.asarray(batch.gold_logp), 0.0), s.epsilon)
    delta_rt = keep(jnp.diff(value, axis=1), tool_rt)

    credit_rt, weight_rt = jnp.zeros_like(delta_rt), jnp.zeros_like(delta_rt)
    ahead = ((0, 0), (0, s.horizon))
    later, there = jnp.pad(delta_rt, ahead), jnp.pad(tool_rt, ahead)
    for k in range(s.horizon):  # short and static: K shifted copies
        credit_rt += s.gamma**k * later[:, k : k + steps]
        weight_rt += s.gamma**k * there[:, k : k + steps]
    left_rt = turns_r[:, None] - jnp.arange(steps)  # n − k
    last_rt = tool_rt & (left_rt <= max(s.horizon, 1))
    terminal_rt = s.terminal * s.gamma ** jnp.maximum(left_rt, 0) * outcome_r[:, None]
    turn_rt = keep(credit_rt / jnp.maximum(weight_rt, 1e-9) + jnp.where(last_rt, terminal_rt, 0.0), tool_rt)
    advantage_rt = keep(s.outcome_weight * outcome_r[:, None] + s.turn_weight * turn_rt, mask_rt)
    return outcome_credit(advantage_rt, s.outcome_weight * outcome_r, turn_rt, diagnose(batch), step=turn_rt)

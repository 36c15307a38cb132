"""From rewards of transitions to advantages: returns compared inside a context, outcomes inside a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from trca_jax.credit.outcome import penalty
from trca_jax.credit.reduce import group_normalise, keep, step_mask
from trca_jax.credit.returns import discounted_returns
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import CreditBatch


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """The paper's values, and where it is silent the choices of methods 10.7.

    gamma: discount a step. terminal_scale: multiplies r_env in the return. episode_value: A_E compares the outcome
    (success), the score (Σ_t r_env) or the sum of all rewards. norm: divide by the std or only subtract the mean.
    ddof, eps: of every std. invalid_penalty: taken off the return of a step whose action could not be parsed.
    episode_weight, step_weight: multiply A_E and A_S; 0 leaves one out.
    """

    gamma: float = 0.95
    terminal_scale: float = 1.0
    episode_value: Literal["outcome", "score", "return"] = "outcome"
    norm: Literal["mean_std", "mean"] = "mean_std"
    ddof: int = 1
    eps: float = 1e-6
    invalid_penalty: float = 0.0
    episode_weight: float = 1.0
    step_weight: float = 1.0

    def __post_init__(self):
        check_number("gamma", self.gamma, 0, 1)
        for name in ("terminal_scale", "eps", "invalid_penalty", "episode_weight", "step_weight"):
            check_number(name, getattr(self, name))
        check_choice("episode_value", self.episode_value, ("outcome", "score", "return"))
        check_choice("norm", self.norm, ("mean_std", "mean"))
        check_choice("ddof", self.ddof, (0, 1))


class Compared(NamedTuple):
    """advantage A, episode A_E, step A_S and returns G, as `Credit` has them."""

    advantage: Float[Array, "R T"]
    episode: Float[Array, "R"]
    step: Float[Array, "R T"]
    returns: Float[Array, "R T"]


def compare(
    batch: CreditBatch,
    reward_rt: Float[Array, "R T"],
    known_rt: Bool[Array, "R T"],
    settings: ComparisonSettings,
) -> Compared:
    """A[r,t] = A_E[r] + A_S[r,t], from outcomes inside a task and completion returns inside a context.

    G[r,t] = r_env + reward + γ·G[r,t+1];  A_E standardises the outcome over the rollouts of a task, A_S standardises G
    over all steps of one context; each is 0 for fewer than two members or equal values.
    batch: reads r_env, outcome, length, group, context and valid. reward_rt: of each transition, 0 at steps that are
    not real. known_rt: real steps whose G is known; the others take part in no statistic of G, and their A_S is 0.
    Source: methods 10.3.
    """
    rollouts, steps = batch.r_env.shape
    mask_rt = step_mask(batch.length, steps)
    total_rt = settings.terminal_scale * keep(batch.r_env, mask_rt) + reward_rt
    returns_rt = discounted_returns(total_rt, mask_rt, settings.gamma)
    returns_rt = returns_rt - penalty(batch, mask_rt, settings.invalid_penalty)

    rules = {"ddof": settings.ddof, "eps": settings.eps, "use_std": settings.norm == "mean_std"}
    value_r, counted_r = {
        "outcome": (batch.outcome, mask_rt[:, 0]),
        "score": (keep(batch.r_env, mask_rt).sum(axis=1), mask_rt[:, 0]),
        "return": (total_rt.sum(axis=1), known_rt[:, 0]),
    }[settings.episode_value]
    episode_r = group_normalise(value_r, jnp.where(counted_r, batch.group, -1), counted_r, rollouts, **rules)
    step_rt = group_normalise(returns_rt, jnp.where(known_rt, batch.context, -1), known_rt, rollouts * steps, **rules)
    advantage_rt = keep(settings.episode_weight * episode_r[:, None] + settings.step_weight * step_rt, mask_rt)
    return Compared(advantage_rt, episode_r, step_rt, returns_rt)

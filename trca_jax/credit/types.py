"""What goes into a credit method and what comes out, with every axis documented once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

EVIDENCE, INVALIDITY, EXECUTION = 0, 1, 2

_AXES = {
    "judgement": "R T J",
    "item_category": "R J",
    "item_mask": "R J",
    "r_env": "R T",
    "outcome": "R",
    "length": "R",
    "group": "R",
    "context": "R T",
    "next_context": "R T",
    "valid": "R T",
    "gold_logp": "R T+1",
    "hindsight_logp": "R T",
    "token_values": "R T L",
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class CreditBatch:
    """One batch of judged rollouts: R rollouts of at most T steps, J rubric items; numpy or jax arrays.

    A step t of rollout r is real where t < length[r]; whatever stands at other steps is ignored. A rollout of length 0
    (padding, or a failure of the infrastructure) takes part in no statistic and receives zeros.

    judgement: 0/1, item j fired at that step. item_category: 0 Evidence, 1 Invalidity, 2 Execution.
    item_mask: 0/1, the item is bound in this rollout's task. r_env: environment reward of the step.
    outcome: terminal result (0/1 or a score). length: real steps, 0..T. group: id of the task, 0..R-1.
    context: id of the decision context *before* the action, 0..R·T-1, unique over (task, context).
    next_context: id of the context after the action, same numbering. valid: 0/1, the action could be parsed.
    Optional signals: gold_logp, mean log-probability of the gold answer before the first and after every step;
    hindsight_logp, mean log-probability of the response given the final state; token_values, the critic's value of each
    response token. Source: methods 1.
    """

    judgement: Shaped[Array, "R T J"]
    item_category: Int[Array, "R J"]
    item_mask: Shaped[Array, "R J"]
    r_env: Float[Array, "R T"]
    outcome: Float[Array, "R"]
    length: Int[Array, "R"]
    group: Int[Array, "R"]
    context: Int[Array, "R T"]
    next_context: Int[Array, "R T"]
    valid: Shaped[Array, "R T"]
    gold_logp: Float[Array, "R T+1"] | None = None
    hindsight_logp: Float[Array, "R T"] | None = None
    token_values: Float[Array, "R T L"] | None = None

    def check(self, needs: Collection[str] = ()) -> None:
        """Check ranks and shapes, then (numpy arrays only, so nothing waits for a device) the values.

        needs: fields that the method reads beyond the common ones (`Method.needs`).
        Raises ValueError naming the field, what it has and what was expected.
        """
        arrays = {f.name: a for f in fields(self) if (a := getattr(self, f.name)) is not None}
        if np.ndim(self.judgement) != 3:
            raise ValueError(f"CreditBatch.judgement has shape {np.shape(self.judgement)}, expected (R, T, J)")
        rollouts, steps, items = np.shape(self.judgement)
        if not (rollouts and steps):
            raise ValueError(
                f"CreditBatch.judgement has shape {np.shape(self.judgement)}, expected R and T of at least 1"
            )
        sizes = {"R": rollouts, "T": steps, "J": items, "T+1": steps + 1}
        for name, array in arrays.items():
            axes, shape = _AXES[name].split(), np.shape(array)
            if len(shape) != len(axes) or any(n != sizes.get(a, n) for n, a in zip(shape, axes, strict=True)):
                expected = tuple(sizes.get(a, a) for a in axes)
                raise ValueError(
                    f"CreditBatch.{name} has shape {shape}, expected ({', '.join(axes)}) = {expected} "
                    f"from judgement {np.shape(self.judgement)}"
                )
        if missing := sorted(set(needs) - set(arrays)):
            raise ValueError(f"CreditBatch.{missing[0]} is None, expected an array: this credit method needs it")
        if all(isinstance(a, np.ndarray) for a in arrays.values()):
            self._check_values(rollouts, steps, needs)

    def _check_values(self, rollouts: int, steps: int, needs: Collection[str]) -> None:
        _check_range("length", self.length, 0, steps)
        played = self.length > 0
        live = np.arange(steps) < self.length[:, None]
        _check_range("group", self.group[played], 0, rollouts - 1)
        _check_range("context", self.context[live], 0, rollouts * steps - 1)
        _check_range("item_category", self.item_category[self.item_mask.astype(bool)], EVIDENCE, EXECUTION)
        if not (np.isfinite(self.r_env[live]).all() and np.isfinite(self.outcome[played]).all()):
            raise ValueError("CreditBatch.r_env or .outcome is not finite at a real step; expected finite rewards")
        if "context" in needs:
            context, group = self.context[live], np.broadcast_to(self.group[:, None], live.shape)[live]
            task = np.zeros(rollouts * steps, int)
            task[context] = group
            if (mixed := context[task[context] != group]).size:
                raise ValueError(
                    f"CreditBatch.context {mixed[0]} occurs in two tasks, expected ids unique over (task, context)"
                )


def _check_range(name: str, values: np.ndarray, low: int, high: int) -> None:
    if not np.issubdtype(values.dtype, np.integer):
        raise ValueError(f"CreditBatch.{name} has dtype {values.dtype}, expected integers")
    bad = values[(values < low) | (values > high)]
    if bad.size:
        raise ValueError(f"CreditBatch.{name} holds {bad[0]}, expected {low}..{high}")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Credit:
    """The credit of every step; all arrays are 0 at steps that are not real.

    advantage: what the policy loss multiplies. episode: the part that compares whole rollouts (mean over the rollout's
    steps). step: the part that compares steps of one context, unweighted. foundational, breakthrough, rubric: the
    rubric rewards r_F, r_B and their fusion r_TRCA. returns: the value that the method standardises for each step.
    diagnostics: scalars for the log.
    """

    advantage: Float[Array, "R T"]
    episode: Float[Array, "R"]
    step: Float[Array, "R T"]
    foundational: Float[Array, "R T"]
    breakthrough: Float[Array, "R T"]
    rubric: Float[Array, "R T"]
    returns: Float[Array, "R T"]
    diagnostics: Mapping[str, Float[Array, ""]]


def outcome_credit(
    advantage: Float[Array, "R T"],
    episode: Float[Array, "R"],
    returns: Float[Array, "R T"],
    diagnostics: Mapping[str, Float[Array, ""]],
    step: Float[Array, "R T"] | None = None,
) -> Credit:
    """The Credit of a method that reads no rubric: the rubric rewards (and step, unless given) are 0."""
    zeros = jnp.zeros_like(advantage)
    return Credit(
        advantage=advantage,
        episode=episode,
        step=zeros if step is None else step,
        foundational=zeros,
        breakthrough=zeros,
        rubric=zeros,
        returns=returns,
        diagnostics=diagnostics,
    )

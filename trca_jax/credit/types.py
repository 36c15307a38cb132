"""What goes into a credit method and what comes out, with every axis documented once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

EVIDENCE, INVALIDITY, EXECUTION = 0, 1, 2
# Signals that must be finite at every real step, for the methods that need them.
_REAL = frozenset({"hindsight_logp", "token_values", "golden_similarity", "redundancy"})

# Axes of every array: R rollouts, T steps, J items, L tokens of a response, G golden documents.
AXES = {
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
    "tool": "R T",
    "hindsight_logp": "R T",
    "token_values": "R T L",
    "token_mask": "R T L",
    "golden_similarity": "R T G",
    "redundancy": "R T",
    "step_score": "R T",
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
    next_context: id of the context after the action, same numbering; those that no action was taken in come last, up to
    R·(T+1)-1. valid: 0/1, the action could be parsed.
    Optional signals: gold_logp, mean log-probability of the gold answer before the first and after every step;
    tool, 0/1, the step called a tool (such steps come first, an answer last); hindsight_logp, mean log-probability of
    the response given the final state; token_values, the critic's value before each of L response tokens, token_mask
    0/1 those that there are; golden_similarity, best match of the step's documents with golden document 1..G, -1 where
    the task has no such document; redundancy, share of the step's documents that were shown before; step_score, what a
    process reward model gives the step, -1..1, NaN where it gave nothing.
    Source: methods 1.
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
    tool: Shaped[Array, "R T"] | None = None
    token_values: Float[Array, "R T L"] | None = None
    token_mask: Shaped[Array, "R T L"] | None = None
    golden_similarity: Float[Array, "R T G"] | None = None
    redundancy: Float[Array, "R T"] | None = None
    step_score: Float[Array, "R T"] | None = None

    def check(self, needs: Collection[str] = ()) -> None:
        """Check ranks and shapes, then the values, on the host (which waits for arrays that a device still computes;
        inside jit or vmap there are no values to check).

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
        if self.token_mask is not None and np.ndim(self.token_mask) == 3:
            sizes["L"] = np.shape(self.token_mask)[2]
        for name, array in arrays.items():
            axes, shape = AXES[name].split(), np.shape(array)
            if len(shape) != len(axes) or any(n != sizes.get(a, n) for n, a in zip(shape, axes, strict=True)):
                expected = tuple(sizes.get(a, a) for a in axes)
                raise ValueError(
                    f"CreditBatch.{name} has shape {shape}, expected ({', '.join(axes)}) = {expected} "
                    f"from judgement {np.shape(self.judgement)}"
                )
        if missing := sorted(set(needs) - set(arrays)):
            raise ValueError(f"CreditBatch.{missing[0]} is None, expected an array: this credit method needs it")
        if not any(isinstance(array, jax.core.Tracer) for array in arrays.values()):
            _check_values({name: np.asarray(array) for name, array in arrays.items()}, needs)


def _check_values(a: Mapping[str, np.ndarray], needs: Collection[str]) -> None:
    """a: the arrays of a batch by name, of right shapes."""
    rollouts, steps, items = a["judgement"].shape
    _check_range("length", a["length"], 0, steps)
    played = a["length"] > 0
    live = np.arange(steps) < a["length"][:, None]
    _check_range("group", a["group"][played], 0, rollouts - 1)
    _check_range("context", a["context"][live], 0, rollouts * steps - 1)
    if "next_context" in needs:
        _check_range("next_context", a["next_context"][live], 0, rollouts * (steps + 1) - 1)
    for name, places in (("r_env", live), ("outcome", played), *((name, live) for name in _REAL & set(needs))):
        if (bad := a[name][places][~np.isfinite(a[name][places])]).size:
            raise ValueError(f"CreditBatch.{name} holds {bad.flat[0]} at a real step, expected finite numbers")
    if "gold_logp" in needs:
        known = np.arange(steps + 1) < a["length"][:, None]
        if (bad := a["gold_logp"][known][~(a["gold_logp"][known] <= 0)]).size:
            raise ValueError(f"CreditBatch.gold_logp holds {bad[0]} at a real step, expected log-probabilities <= 0")
    if "step_score" in needs:
        scores = a["step_score"][live]
        if (bad := scores[~(np.isnan(scores) | (np.abs(scores) <= 1))]).size:
            raise ValueError(
                f"CreditBatch.step_score holds {bad[0]} at a real step, expected -1..1, or NaN for no score"
            )
    group = a["group"][played]
    if "judgement" in needs and items:
        bound = a["item_mask"].astype(bool)
        _check_range("item_category", a["item_category"][bound], EVIDENCE, EXECUTION)
        kind = np.where(bound, a["item_category"], -1)[played]
        first = np.zeros((rollouts, items), kind.dtype)
        first[group[::-1]] = kind[::-1]
        if (mixed := group[(first[group] != kind).any(axis=1)]).size:
            raise ValueError(
                f"CreditBatch.item_mask or .item_category differs inside task {mixed[0]}, expected equal rows: the "
                "rollouts of one task are judged by the same items"
            )
    if "context" in needs:
        context, group = a["context"][live], np.broadcast_to(a["group"][:, None], live.shape)[live]
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
    steps). step: the part that compares steps of one context, both unweighted. foundational, breakthrough, rubric: the
    rubric rewards r_F, r_B and their fusion r_TRCA. returns: the value that the method standardises for each step.
    diagnostics: scalars for the log. token_advantage, token_returns: of every response token and the critic's targets,
    for methods that value tokens; None for the others, whose tokens all take their step's advantage.
    """

    advantage: Float[Array, "R T"]
    episode: Float[Array, "R"]
    step: Float[Array, "R T"]
    foundational: Float[Array, "R T"]
    breakthrough: Float[Array, "R T"]
    rubric: Float[Array, "R T"]
    returns: Float[Array, "R T"]
    diagnostics: Mapping[str, Float[Array, ""]]
    token_advantage: Float[Array, "R T L"] | None = None
    token_returns: Float[Array, "R T L"] | None = None


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

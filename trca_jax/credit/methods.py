"""The table of credit methods: a name, its function, its default settings and the signals it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from trca_jax.credit.gigpo import GiGPOSettings, gigpo
from trca_jax.credit.graphgpo import GraphGPOSettings, graphgpo
from trca_jax.credit.grpo import GRPOSettings, grpo
from trca_jax.credit.hcapo import HCAPOSettings, hcapo
from trca_jax.credit.igpo import IGPOSettings, igpo
from trca_jax.credit.ppo import PPOCreditSettings, ppo
from trca_jax.credit.prm import PRMSettings, prm
from trca_jax.credit.rloo import RLOOSettings, rloo
from trca_jax.credit.stepsearch import StepSearchSettings, stepsearch
from trca_jax.credit.trace import TRACESettings, trace
from trca_jax.credit.trca import TRCASettings, trca
from trca_jax.credit.types import Credit, CreditBatch


@dataclass(frozen=True)
class Method:
    """fn: pure and jittable, (batch, settings) -> Credit. defaults: its frozen settings. needs: fields of the batch
    beyond rewards, outcome, length, group and valid that must hold real data. tokens: 'action' or 'response', the
    sampled tokens that carry the advantage. context: what `CreditBatch.context` numbers, 'fields' (of the rubric) or
    'observation' (the exact text)."""

    fn: Callable[[CreditBatch, Any], Credit]
    defaults: Any
    needs: frozenset[str]
    tokens: str = "response"
    context: str = "observation"


METHODS: dict[str, Method] = {
    "trca": Method(trca, TRCASettings(), frozenset({"judgement", "context"}), "action", "fields"),
    "grpo": Method(grpo, GRPOSettings(), frozenset()),
    "rloo": Method(rloo, RLOOSettings(), frozenset()),
    "gigpo": Method(gigpo, GiGPOSettings(), frozenset({"context"})),
    "graphgpo": Method(graphgpo, GraphGPOSettings(), frozenset({"context", "next_context"})),
    "ppo": Method(ppo, PPOCreditSettings(), frozenset({"token_values", "token_mask"})),
    "hcapo": Method(hcapo, HCAPOSettings(), frozenset({"hindsight_logp"})),
    "igpo": Method(igpo, IGPOSettings(), frozenset({"gold_logp"})),
    "trace": Method(trace, TRACESettings(), frozenset({"gold_logp", "tool"})),
    "stepsearch": Method(
        stepsearch,
        StepSearchSettings(),
        frozenset({"golden_similarity", "redundancy", "token_values", "token_mask"}),
    ),
    "prm": Method(prm, PRMSettings(), frozenset({"step_score", "context"}), "action", "fields"),
}


def make(name: str, *, checks: bool = True, **overrides: Any) -> Callable[[CreditBatch], Credit]:
    """The method as one compiled function of a batch; it compiles once per shape, whatever the lengths and ids.

    name: a key of METHODS. overrides: settings that differ from the method's defaults. The arrays of a batch may be
    numpy's, JAX's, or any that speak DLPack (torch). checks: False leaves out `CreditBatch.check`, which reads every
    array on the host, and everything else that is not compiled.
    Raises ValueError for an unknown name or setting, a bad value, or (when called) a batch of wrong shapes or values or
    without a signal that the method needs.

    >>> advantages = make("trca", lam=0.5)
    """
    if name not in METHODS:
        raise ValueError(f"credit method {name!r} is unknown, expected one of {', '.join(METHODS)}")
    method = METHODS[name]
    known = [f.name for f in dataclasses.fields(method.defaults)]
    if unknown := sorted(set(overrides) - set(known)):
        raise ValueError(f"credit method {name!r} has no setting {unknown[0]!r}, expected one of {', '.join(known)}")
    settings = dataclasses.replace(method.defaults, **overrides)
    compiled = jax.jit(method.fn, static_argnames="settings")

    def credit(batch: CreditBatch) -> Credit:
        if checks:
            batch = jax.tree.map(_as_array, batch)
            batch.check(method.needs)
        return compiled(batch, settings=settings)

    return credit


def _as_array(x: Any) -> Any:
    """numpy and JAX arrays as they are; arrays of other libraries without a copy where that is possible."""
    return x if isinstance(x, np.ndarray | jax.Array) else jax.dlpack.from_dlpack(x)

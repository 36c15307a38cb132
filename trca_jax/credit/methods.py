"""The table of credit methods: a name, its function, its default settings and the signals it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from trca_jax.credit.gigpo import GiGPOSettings, gigpo
from trca_jax.credit.grpo import GRPOSettings, grpo
from trca_jax.credit.rloo import RLOOSettings, rloo
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
}


def make(name: str, **overrides: Any) -> Callable[[CreditBatch], Credit]:
    """The method as one compiled function of a batch; it compiles once per shape, whatever the lengths and ids.

    name: a key of METHODS. overrides: settings that differ from the method's defaults.
    Raises ValueError for an unknown name or setting, a bad value, or (when called) a batch of wrong shape or without a
    signal that the method needs.

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
        batch.check(method.needs)
        return compiled(batch, settings=settings)

    return credit

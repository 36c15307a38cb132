"""What launch/benchmark.py measures: one module a suite, and the rows that they give."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """One figure; reference and ratio are None where there is nothing to compare with."""

    name: str
    value: float
    unit: str
    reference: float | None = None
    ratio: float | None = None


def compare(name: str, unit: str, pairs: list[tuple[float, float]], *, more_is_better: bool) -> Row:
    """A row of the medians of (ours, reference), measured in turn."""
    value, reference = (median(side) for side in zip(*pairs, strict=True))
    return Row(name, value, unit, reference, value / reference if more_is_better else reference / value)

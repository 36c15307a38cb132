"""Checks that every method's settings share."""

from __future__ import annotations

import math
from collections.abc import Collection


def check_choice(name: str, value: object, choices: Collection) -> None:
    """Raise ValueError unless value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}")


def check_number(name: str, value: object, low: float = 0.0, high: float = math.inf) -> None:
    """Raise ValueError unless value is a finite number in [low, high]."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, expected a finite number in [{low}, {high}]")

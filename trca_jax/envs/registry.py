"""Benchmarks by name, imported only when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trca_jax.envs.base import Benchmark

_BENCHMARKS = {
    "alfworld": ("trca_jax.envs.alfworld", "Alfworld"),
    "searchqa": ("trca_jax.envs.searchqa", "Searchqa"),
    "webshop": ("trca_jax.envs.webshop", "Webshop"),
}


def make_benchmark(name: str, **settings: Any) -> Benchmark:
    """The benchmark of that name; settings: its own fields, such as where its data lies.

    name: one of ours, or 'package.module:Class' for any other that Python can import. Raises ValueError for an unknown
    name, naming those that exist.
    """
    module, _, factory = name.partition(":")
    if not factory:
        if name not in _BENCHMARKS:
            known = ", ".join(sorted(_BENCHMARKS))
            raise ValueError(f"unknown benchmark {name!r}; expected one of {known}, or 'package.module:Class'")
        module, factory = _BENCHMARKS[name]
    try:
        made = getattr(import_module(module), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"benchmark {name!r} cannot be imported ({error}); is its folder on PYTHONPATH?") from error
    return made(**settings)

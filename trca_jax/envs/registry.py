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

    Raises ValueError for an unknown name, naming those that exist.
    """
    if name not in _BENCHMARKS:
        raise ValueError(f"unknown benchmark {name!r}; expected one of {', '.join(sorted(_BENCHMARKS))}")
    module, factory = _BENCHMARKS[name]
    return getattr(import_module(module), factory)(**settings)

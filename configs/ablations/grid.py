"""What every ablation is made of: a config to start from, and the grid of runs over it."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

from ml_collections import ConfigDict


def grid(
    base: str, name: str, settings: Mapping[str, Mapping[str, object]], methods: Sequence[str] = ("trca",)
) -> ConfigDict:
    """The config `base` (BENCHMARK or BENCHMARK:PRESET) with a grid over it: a run for every method, setting, task type
    and seed. settings: for each name the fields that it changes. Raises ValueError if there is no such base."""
    benchmark, _, preset = base.partition(":")
    if not benchmark.isidentifier() or not find_spec(f"configs.{benchmark}"):
        raise ValueError(f"there is no config configs/{benchmark}.py; the grid lies over one, as in lambda.py:alfworld")
    c = import_module(f"configs.{benchmark}").get_config(*filter(None, [preset]))
    c.iterations = 20
    c.eval.every = 5
    c.sweep = ConfigDict()
    c.sweep.name = name
    c.sweep.methods = tuple(methods)
    c.sweep.settings = tuple((setting, tuple(fields.items())) for setting, fields in settings.items())
    c.sweep.task_types = ()  # runs on each of these alone; empty: on those of the config, together
    c.sweep.seeds = (0, 1, 2)
    c.sweep.setting = ""  # of one run; launch/sweep.py sets it
    return c

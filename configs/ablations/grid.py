"""What every ablation is made of: a config to start from, and the grid of runs over it."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

from ml_collections import ConfigDict


def grid(
    base: str, name: str, settings: Mapping[str, Mapping[str, object]], methods: Sequence[str] = ("trca",)
) -> ConfigDict:
    """The config `base` with a grid over it: a run for every method, setting, task type and seed.

    base: the name of one in configs/, or any other module 'package.module' that Python can import; ':PRESET' may stand
    behind it. settings: for each name the fields that it changes. Raises ValueError if there is no such base.
    """
    place, _, preset = base.partition(":")
    module = place if "." in place else f"configs.{place}"
    try:
        found = all(map(str.isidentifier, module.split("."))) and find_spec(module)
    except ImportError:
        found = None
    if not found:
        raise ValueError(
            f"there is no config {base!r} to lay the grid over; give one of configs/, as lambda.py:alfworld"
        )
    c = import_module(module).get_config(*filter(None, [preset]))
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

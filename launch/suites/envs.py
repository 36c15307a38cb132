"""The engines of all benchmarks."""

from __future__ import annotations

from ml_collections import ConfigDict

from launch.command import console
from launch.suites import Row
from launch.suites.alfworld import WHY_BROKEN, alfworld
from launch.suites.webshop import webshop
from trca_jax.envs.webshop.data import GENERATED, holds_catalogue


def envs(config: ConfigDict, quick: bool) -> list[Row]:
    """ALFWorld's rows and WebShop's, of generated data and of what config.env.data is: games or a catalogue.

    Where TextWorld's own engine does not run, which is said, there is nothing to compare ALFWorld's with, and its rows
    are left out.
    """
    source = config.env.data
    rows = webshop(source, quick)
    if WHY_BROKEN:
        console.print(f"no rows of ALFWorld: {WHY_BROKEN}")
        return rows
    return alfworld(GENERATED if holds_catalogue(source) else source, quick) + rows

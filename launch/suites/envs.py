"""The engines of all benchmarks."""

from __future__ import annotations

from ml_collections import ConfigDict

from launch.command import console
from launch.suites import Row
from launch.suites.alfworld import WHY_BROKEN, alfworld
from launch.suites.retrieval import holds_corpus, searchqa
from launch.suites.webshop import webshop
from trca_jax.envs.webshop.data import GENERATED, holds_catalogue


def envs(config: ConfigDict, quick: bool) -> list[Row]:
    """ALFWorld's rows, WebShop's and those of SearchQA's search engine. config.env.data: games, a catalogue (whose rows
    come after those of the generated one), or passages; of the others generated data are measured.

    Where TextWorld's own engine does not run, which is said, there is nothing to compare ALFWorld's with, and its rows
    are left out.
    """
    source = config.env.data
    passages = holds_corpus(source)
    games = GENERATED if passages or holds_catalogue(source) else source
    rows = webshop(source, quick) + searchqa(source if passages else GENERATED, quick)
    if WHY_BROKEN:
        console.print(f"no rows of ALFWorld: {WHY_BROKEN}")
        return rows
    return alfworld(games, quick) + rows

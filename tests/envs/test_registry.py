"""Benchmarks by name."""

import subprocess
import sys

import pytest

from trca_jax.envs.alfworld import Alfworld
from trca_jax.envs.registry import make_benchmark
from trca_jax.envs.searchqa import Searchqa
from trca_jax.envs.webshop import Webshop


def test_by_name_with_settings():
    assert make_benchmark("alfworld", source="x", seed=2) == Alfworld(source="x", seed=2)
    assert make_benchmark("webshop", source="x", seed=2) == Webshop(source="x", seed=2)
    assert make_benchmark("searchqa", source="x", seed=2) == Searchqa(source="x", seed=2)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"unknown benchmark 'alfwrld'; expected one of .*alfworld"):
        make_benchmark("alfwrld")


def test_any_class_that_can_be_imported_is_a_benchmark():
    assert make_benchmark("trca_jax.envs.alfworld:Alfworld", seed=3) == Alfworld(seed=3)


@pytest.mark.parametrize(
    ("name", "says"),
    [("nowhere.at_all:World", "nowhere"), ("trca_jax.envs.alfworld:World", "'World'"), (":World", "Empty module")],
)
def test_what_cannot_be_imported_is_told(name, says):
    with pytest.raises(ValueError, match=f"benchmark '{name}' cannot be imported .*{says}.*PYTHONPATH"):
        make_benchmark(name)


@pytest.mark.parametrize("name", ["alfworld", "searchqa", "webshop"])
def test_naming_a_benchmark_loads_neither_its_engine_nor_jax(name):
    heavy = {"jax", "textworld", "alfworld", "fast_downward", "torch", "rapidfuzz", "spacy"}
    code = (
        f"import sys; from trca_jax.envs.registry import make_benchmark; make_benchmark({name!r}).library; "
        f"print({heavy} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"

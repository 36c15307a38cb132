"""Measures one part of the library: a table, and the same as one JSON object in the last line.

python launch/benchmark.py SUITE [--quick] [--data=SOURCE]

A suite is a function of the table SUITES. A row's ratio says how many times better the value is than the reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from absl import flags
from ml_collections import ConfigDict
from rich.table import Table

from configs.alfworld import get_config
from launch.command import console, parse_flags, run
from launch.suites import Row
from launch.suites.credit import credit
from launch.suites.envs import envs
from launch.suites.policy import sampler, update
from launch.suites.retrieval import retrieval
from launch.suites.rubric import rubric

_QUICK = flags.DEFINE_boolean("quick", False, "Fewer games and repeats: seconds instead of minutes.")
_DATA = flags.DEFINE_string("data", "generated", "Where games and questions come from, as in --config.env.data.")

SUITES: dict[str, Callable[[ConfigDict, bool], list[Row]]] = {
    "credit": credit,
    "envs": envs,
    "retrieval": retrieval,
    "rubric": rubric,
    "sampler": sampler,
    "update": update,
}


def main() -> int:
    names = parse_flags(plain=True)
    if len(names) != 1 or names[0] not in SUITES:
        raise ValueError(f"benchmark suite {' '.join(names)!r} is unknown, expected one of {', '.join(SUITES)}")
    config = get_config()
    config.env.data = _DATA.value
    rows = SUITES[names[0]](config, _QUICK.value)
    table = Table("name", title=f"{names[0]}, data: {_DATA.value}")
    for name in ("value", "unit", "reference", "ratio"):
        table.add_column(name, justify="left" if name == "unit" else "right")
    for row in rows:
        table.add_row(row.name, _figure(row.value), row.unit, _figure(row.reference), _figure(row.ratio))
    console.print(table)
    print(json.dumps({"suite": names[0], "rows": [asdict(row) for row in rows]}), flush=True)
    return 0


def _figure(value: float | None) -> str:
    return "" if value is None else format(value, ",.0f" if abs(value) >= 1000 else ".4g")


if __name__ == "__main__":
    run(main)

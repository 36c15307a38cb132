"""Tidy results of many runs: one row for each run, evaluation and kind of task, a line of JSON each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

# What every row holds. method, setting, task_types, seed: of the run; setting is what an ablation calls it, "" if it is
# part of none. iteration, rollouts: how far it was trained when it was evaluated. kind: of the tasks, or "all".
# success, low, high: share of the n episodes that were won, with its 95 % interval by `wilson`. won: a letter for each
# episode, task by task, `repeats` of each: 1, 0, or - where the infrastructure failed.
KEYS = (
    "method", "setting", "task_types", "seed", "iteration", "rollouts", "kind", "success", "low", "high", "n",
    "repeats", "won",
)  # fmt: skip


def write_results(path: Path, rows: Sequence[Row]) -> None:
    """Writes the rows atomically."""
    part = path.with_name(path.name + ".part")
    part.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    os.replace(part, path)


def read_results(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file. Raises ValueError that names the first line that is cut off or no row."""
    rows = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        where = f"{path}, line {number}"
        again = "launch/sweep.py with the arguments that it was made with writes it anew, and keeps what is finished"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where} is cut off or damaged ({error}); {again}") from None
        if not isinstance(row, dict) or (missing := sorted(set(KEYS) - set(row))):
            lacking = f"lacks {missing[0]!r}" if isinstance(row, dict) else "is no table"
            raise ValueError(f"{where} {lacking}, so it is no result; {again}")
        rows.append(row)
    return rows


def labels(rows: Sequence[Row]) -> Callable[[Row], str]:
    """How to name what a row is about: by what differs among the rows, its method, its setting or its task types."""
    several = {part: len({row[part] for row in rows}) > 1 for part in ("method", "setting", "task_types")}
    shown = [part for part, differs in several.items() if differs] or ["method"]
    return lambda row: " · ".join(row[part] for part in shown if row[part]) or row["method"]

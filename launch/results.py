"""From run folders to tidy results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trca_jax.evaluation.report import wilson
from trca_jax.learner.metrics import read_metrics
from trca_jax.learner.record import read_run

# Of the iterations since the last evaluation, on average: how training went. Rollouts won are `sampled_success`.
_TRAINING = (
    "useful", "useful_failed", "all_failed_groups", "valid", "steps", "foundational", "breakthrough",
    "context_group_size", "context_shared",
)  # fmt: skip


def run_of(record: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a run is, from its record: the first keys of a row. Raises ValueError for a config of another version."""
    config = record["config"]
    try:
        return {
            "method": config["method"],
            "setting": config.get("sweep", {}).get("setting") or config.get("baseline", ""),
            "task_types": "+".join(config["env"]["task_types"]),
            "seed": config["seed"],
        }
    except KeyError as error:
        name = error.args[0]
        raise ValueError(f"{folder} was written by another version: its config has no field {name!r}") from None


def run_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a run: of every evaluation so far one for each kind of task, and one for all with how training went.

    Raises ValueError if the folder holds no run, or an evaluation of it cannot be read.
    """
    record, metrics = read_run(folder), read_metrics(folder)
    evaluations = {m["iteration"]: m for m in metrics if m["kind"] == "eval"}  # of several the latest has the file
    rows, before = [], 0
    for iteration, evaluation in sorted(evaluations.items()):
        results, repeats = _episodes(folder, iteration)
        trained = [m for m in metrics if m["kind"] == "train" and before <= m["iteration"] < iteration]
        before = iteration
        kinds = sorted({r["kind"] for r in results})
        for kind in [*(kinds if len(kinds) > 1 else ()), "all"]:
            here = [r for r in results if kind in ("all", r["kind"])]
            won = "".join("-" if r["failure"] else str(int(r["won"])) for r in here)
            n = len(here) - won.count("-")
            low, high = wilson(won.count("1"), n)
            row = run_of(record, folder) | {"iteration": iteration, "rollouts": evaluation["rollouts"], "kind": kind}
            row |= {"success": won.count("1") / max(n, 1), "low": low, "high": high, "n": n}
            row |= {"repeats": repeats, "won": won}
            rows.append({name: round(x, 5) if isinstance(x, float) else x for name, x in row.items()})
        if trained:
            rows[-1]["sampled_success"] = _mean(trained, "success")
            rows[-1] |= {name: _mean(trained, name) for name in _TRAINING if name in trained[0]}
    return rows


def _episodes(folder: Path, iteration: int) -> tuple[list[dict], int]:
    """Every episode of an evaluation, task by task, and how many there are of each."""
    path = folder / f"evaluation-{iteration}.json"
    try:
        results = json.loads(path.read_text())["results"]
        repeats = 1 + max(r["repeat"] for r in results)
        if [r["repeat"] for r in results] != list(range(repeats)) * (len(results) // repeats):
            raise ValueError("not every task was played as often")
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{path} cannot be read ({error})"
        raise ValueError(f"{problem}; restore it, or delete {folder} to have the run made again") from None
    return results, repeats


def _mean(records: list[dict], name: str) -> float:
    return round(float(np.mean([r[name] for r in records])), 5)

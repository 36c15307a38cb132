"""Compares runs: held-out success of every method against sampled rollouts, over its seeds; a table and a picture.

python launch/compare.py RUN [RUN ...] [--picture=comparison.png]
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from rich.box import SIMPLE_HEAD
from rich.table import Table

from launch.command import console, parse_flags, run
from trca_jax.envs.registry import make_benchmark
from trca_jax.evaluation.report import learning_curve, wilson
from trca_jax.learner.metrics import funnel, read_metrics
from trca_jax.learner.record import read_run
from trca_jax.rubrics.language import Judge

_PICTURE = flags.DEFINE_string("picture", "comparison.png", "Of the picture; the figures go beside it as .json.")
_SAME = ("training", "evaluation", "rubric", "weights")


def read(folders: Sequence[Path]) -> dict[str, list[list[dict[str, Any]]]]:
    """The records of each run, by method. Raises ValueError unless all runs have the same games, rubric and start."""
    found, first = defaultdict(list), None
    for folder in folders:
        record, metrics = read_run(folder), read_metrics(folder)
        if not metrics:
            raise ValueError(f"{folder} has no metrics yet; let it finish an iteration")
        first = first or (folder, record)
        for part in _SAME:
            if record[part] != first[1][part]:
                raise ValueError(f"{folder} and {first[0]} differ in {part}; only runs that share it can be compared")
        found[record["config"]["method"]].append(metrics)
    return dict(found)


def pooled(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Held-out points of several seeds as one: successes and episodes are added up, with the interval of their sum.

    Points that not every seed has are left out. seeds: the success of each.
    """
    by_place = defaultdict(list)
    for metrics in runs:
        for record in metrics:
            if record["kind"] == "eval":
                by_place[record["rollouts"]].append(record)
    points = []
    for rollouts, records in sorted(by_place.items()):
        if len(records) == len(runs):
            n = sum(r["episodes"] for r in records)
            won = round(sum(r["success"] * r["episodes"] for r in records))
            low, high = wilson(won, n)
            seeds = [r["success"] for r in records]
            point = {"rollouts": rollouts, "success": won / max(n, 1), "low": low, "high": high}
            points.append(point | {"episodes": n, "seeds": seeds})
    return points


def averaged(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Training figures of every iteration that all seeds have done, averaged over them."""
    trains = [[r for r in metrics if r["kind"] == "train"] for metrics in runs]
    names = ("rollouts", "success", "useful", "useful_failed", "all_failed_groups", "foundational", "breakthrough")
    out = []
    for records in zip(*trains, strict=False):
        items = {name: float(np.mean([r["items"].get(name, 0.0) for r in records])) for name in records[0]["items"]}
        out.append({name: float(np.mean([r[name] for r in records])) for name in names} | {"items": items})
    return out


def reached(points: Sequence[Mapping[str, Any]], goal: float) -> float | None:
    """Rollouts at which the held-out success first is `goal`, on straight lines between the points; None if never."""
    for before, after in pairwise(points):
        if before["success"] < goal <= after["success"]:
            part = (goal - before["success"]) / (after["success"] - before["success"])
            return before["rollouts"] + part * (after["rollouts"] - before["rollouts"])
    return points[0]["rollouts"] if points and points[0]["success"] >= goal else None


def main() -> int:
    folders = [Path(name) for name in parse_flags(plain=True)]
    if not folders:
        raise ValueError("no runs are named; give the folders of two or more, such as runs/*")
    runs = read(folders)
    points = {method: pooled(own) for method, own in runs.items()}
    curves = {method: averaged(own) for method, own in runs.items()}
    places = sorted({p["rollouts"] for own in points.values() for p in own})
    table = Table("method", "seeds", box=SIMPLE_HEAD, title="held-out success % [95 % interval], by sampled rollouts")
    for place in places:
        table.add_column(f"{place:,}", justify="right")
    for method, own in points.items():
        at = {p["rollouts"]: p for p in own}
        cells = [
            f"{100 * p['success']:.1f} [{100 * p['low']:.1f}, {100 * p['high']:.1f}]" if (p := at.get(place)) else "–"
            for place in places
        ]
        table.add_row(method, str(len(runs[method])), *cells)
    console.print(table)
    for method, own in points.items():
        best = max(own, key=lambda p: p["success"], default=None)
        for other, theirs in points.items():
            if best and other != method and (needed := reached(theirs, best["success"])) is not None:
                console.print(
                    f"{other} reaches the best of {method}, {100 * best['success']:.1f} % at {best['rollouts']:,} "
                    f"rollouts, after about {needed:,.0f}: {needed / max(best['rollouts'], 1):.0%}"
                )
    out = Path(_PICTURE.value)
    library = make_benchmark(read_run(folders[0])["config"]["env"]["name"]).library
    learning_curve(out, curves, points, funnel(Judge(library)))
    out.with_suffix(".json").write_text(json.dumps({"held_out": points, "training": curves}, indent=1))
    console.print(f"picture {out}, figures {out.with_suffix('.json')}")
    return 0


if __name__ == "__main__":
    run(main)

"""Compares runs: held-out success of every method or setting against sampled rollouts, over its seeds and by task type;
a table, pictures and the figures behind them.

python launch/compare.py RUN [RUN ...] [--budgets=1920,3840,6400] [--goal=0.3] [--picture=comparison.png]
python launch/compare.py runs/methods/*/        what launch/sweep.py ran
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from rich.console import Console

from launch.command import console, parse_flags, run
from launch.results import run_of, run_rows
from trca_jax.envs.registry import make_benchmark
from trca_jax.evaluation.efficiency import BUDGETS, Curve, common_budget, curves, efficiency, reached
from trca_jax.evaluation.efficiency_view import efficiency_picture, efficiency_table
from trca_jax.evaluation.report import learning_curve
from trca_jax.evaluation.results import labels
from trca_jax.learner.metrics import funnel, read_metrics
from trca_jax.learner.record import read_run, write_json
from trca_jax.rubrics.language import Judge

_PICTURE = flags.DEFINE_string(
    "picture", "comparison.png", "Of the picture; beside it go a second one, of sample efficiency, and the figures."
)
_BUDGETS = flags.DEFINE_list("budgets", [], "Rollouts to compare at; by default those of the paper, or evaluations.")
_GOAL = flags.DEFINE_float("goal", None, "Success to count the rollouts to; by default what every run reaches.")
_SAME = ("training", "evaluation", "rubric", "weights")


def read(folders: Sequence[Path]) -> tuple[list[dict[str, Any]], dict[str, list[list[dict[str, Any]]]]]:
    """The tidy rows of all runs, and the records of each run by its label. Raises ValueError unless all runs have the
    same games, rubric and start."""
    rows, found, first = [], [], None
    for folder in folders:
        record, metrics = read_run(folder), read_metrics(folder)
        if not metrics:
            raise ValueError(f"{folder} has no metrics yet; let it finish an iteration")
        first = first or (folder, record)
        for part in _SAME:
            if record[part] != first[1][part]:
                raise ValueError(f"{folder} and {first[0]} differ in {part}; only runs that share it can be compared")
        rows += run_rows(folder)
        found.append((run_of(record, folder), metrics))
    name, runs = labels([of for of, _ in found]), defaultdict(list)
    for of, metrics in found:
        runs[name(of)].append(metrics)
    return rows, dict(runs)


def averaged(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Training figures of every iteration that all seeds have done, averaged over them."""
    trains = [[r for r in metrics if r["kind"] == "train"] for metrics in runs]
    names = ("rollouts", "success", "useful", "useful_failed", "all_failed_groups", "foundational", "breakthrough")
    out = []
    for records in zip(*trains, strict=False):
        items = {name: float(np.mean([r["items"].get(name, 0.0) for r in records])) for name in records[0]["items"]}
        out.append({name: float(np.mean([r[name] for r in records])) for name in names} | {"items": items})
    return out


def budgets_of(found: Mapping[str, Curve], asked: Sequence[str]) -> list[float]:
    """The budgets asked for; else the published ones if all runs reach them, else the evaluations that all share.
    Raises ValueError for a budget that is no positive number."""
    if asked:
        if not all(text.strip().isdigit() for text in asked):
            raise ValueError(f"--budgets={','.join(asked)}: expected whole numbers of rollouts, as in 1920,3840,6400")
        return [float(text) for text in asked]
    if common_budget(found) >= BUDGETS[-1]:
        return list(BUDGETS)
    return sorted(set.intersection(*(set(curve.rollouts.tolist()) for curve in found.values())))


def main() -> int:
    folders = [Path(name) for name in parse_flags(plain=True)]
    if not folders:
        raise ValueError("no runs are named; give the folders of two or more, such as runs/*/")
    rows, runs = read(folders)
    whole = curves(rows)
    if not whole:
        raise ValueError("there is no evaluation that all seeds of a method have; let the runs go on")
    goal = _GOAL.value if _GOAL.value is not None else min(float(curve.success.max()) for curve in whole.values())
    budgets = budgets_of(whole, _BUDGETS.value)
    by_kind = {}
    for kind in [*sorted({row["kind"] for row in rows} - {"all"}), "all"]:
        found = curves(rows, kind)
        by_kind[kind] = found, efficiency(found, budgets, goal)
    # A file or a pipe has no width that the table would have to fit into.
    wide = console if console.is_terminal else Console(highlight=False, width=200)
    wide.print(efficiency_table(by_kind, budgets, goal))
    found = by_kind["all"][1]
    leader = max(found, key=lambda label: found[label]["area"][0])
    for label, curve in whole.items():
        best, place = curve.success.max(), curve.rollouts[curve.success.argmax()]
        needed = reached(whole[leader].rollouts, whole[leader].success, best)
        if label != leader and place and np.isfinite(needed):
            console.print(
                f"{leader} reaches the best of {label}, {100 * best:.1f} % at {place:,.0f} rollouts, after about "
                f"{needed:,.0f}: {needed / place:.0%}",
                soft_wrap=True,
            )
    out = Path(_PICTURE.value)
    beside = out.with_name(f"{out.stem}-efficiency{out.suffix}")
    library = make_benchmark(read_run(folders[0])["config"]["env"]["name"]).library
    training = {label: averaged(own) for label, own in runs.items()}
    held_out = {label: points(whole[label], figures) for label, figures in found.items()}
    learning_curve(out, training, held_out, funnel(Judge(library)))
    efficiency_picture(beside, by_kind, budgets, goal)
    kinds = {kind: figures for kind, (_, figures) in by_kind.items()}
    content = {"budgets": budgets, "goal": goal, "held_out": held_out, "efficiency": kinds, "training": training}
    write_json(out.with_suffix(".json"), finite(content))
    console.print(f"pictures {out} and {beside}, figures {out.with_suffix('.json')}", soft_wrap=True)
    return 0


def points(curve: Curve, figures: Mapping[str, Any]) -> list[dict[str, float]]:
    """The evaluations of a curve, each with its interval."""
    return [
        {"rollouts": float(x), "success": value, "low": low, "high": high}
        for x, (value, low, high) in zip(curve.rollouts, figures["points"], strict=True)
    ]


def finite(content: Any) -> Any:
    """The same with None for what JSON cannot say: infinite, or not a number."""
    if isinstance(content, Mapping):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not np.isfinite(content) else content


if __name__ == "__main__":
    run(main)

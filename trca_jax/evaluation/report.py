"""How results are shown: intervals, the table per kind of task, and the learning curve."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from rich.box import SIMPLE_HEAD
from rich.table import Table

# Okabe and Ito's colours, which differ in hue and lightness for every kind of colour vision; yellow is too pale.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "osD^vPX"
_Z = 1.959964  # 97.5 % point of the normal distribution
STYLE = {
    "font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#888888", "axes.grid": True,
    "axes.axisbelow": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.8, "legend.frameon": False,
}  # fmt: skip
NOTE = {"fontsize": 8.5, "fontweight": "normal", "color": "#666666"}


def wilson(successes: int, n: int) -> tuple[float, float]:
    """The 95 % score interval of a proportion; (0, 1) where nothing was tried.

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n), p = successes/n, z = 1.96. Raises ValueError unless
    0 <= successes <= n. Source: Wilson 1927.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} trials; expected a number from 0 to {n}")
    if n == 0:
        return 0.0, 1.0
    p, shrink = successes / n, _Z**2 / n
    half = _Z * math.sqrt(p * (1 - p) / n + shrink / (4 * n))
    low, high = ((p + shrink / 2 + side) / (1 + shrink) for side in (-half, half))
    return max(low, 0.0), min(high, 1.0)


def summary(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One record for each kind of task, sorted, and "all" at the end.

    results: an episode each, with task (id), kind, won, score, steps and failure (None, or why the infrastructure
    failed; such an episode counts in `failures` alone). A record: kind, games (different tasks), episodes, won, success
    (NaN without episodes), low, high (`wilson` over episodes), score (mean; NaN without episodes), steps (mean of those
    won; NaN without any), failures.
    """
    results = list(results)
    rows = []
    for kind in [*sorted({r["kind"] for r in results}), "all"]:
        here = [r for r in results if kind in ("all", r["kind"])]
        played = [r for r in here if not r["failure"]]
        steps = [r["steps"] for r in played if r["won"]]
        low, high = wilson(len(steps), len(played))
        rows.append({
            "kind": kind, "games": len({r["task"] for r in played}), "episodes": len(played), "won": len(steps),
            "success": len(steps) / len(played) if played else math.nan, "low": low, "high": high,
            "score": sum(r["score"] for r in played) / len(played) if played else math.nan,
            "steps": sum(steps) / len(steps) if steps else math.nan, "failures": len(here) - len(played),
        })  # fmt: skip
    return rows


def macro(rows: Sequence[Mapping[str, Any]], name: str = "success") -> float:
    """The unweighted mean over the kinds of a `summary`; those without an episode are left out (NaN without any)."""
    found = [row[name] for row in rows[:-1] if row["episodes"]]
    return sum(found) / len(found) if found else math.nan


def evaluation_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """The `summary` as a table, with the unweighted mean over the kinds if there are several: steps are those of the
    episodes won; failures have a column only if there are any, and the score only if it is no other word for success.
    """
    rows = summary(results)
    scores = any(row["episodes"] and row["score"] != row["success"] for row in rows)
    failures = rows[-1]["failures"] > 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("task type", overflow="fold")
    for name in ("games", "episodes", "success %", "95 % CI", *["score %"] * scores, "steps", *["failed"] * failures):
        table.add_column(name, justify="right")
    for row in rows:
        if row is rows[-1]:
            table.add_section()
            if len(rows) > 2:
                means = [_number(100 * macro(rows)), "", *[_number(100 * macro(rows, "score"))] * scores]
                table.add_row("mean of types", "", "", *means)
        table.add_row(
            row["kind"], str(row["games"]), str(row["episodes"]), _number(100 * row["success"]),
            f"{100 * row['low']:.1f}–{100 * row['high']:.1f}",
            *[_number(100 * row["score"])] * scores, _number(row["steps"]),
            *[str(row["failures"])] * failures, style="bold" if row is rows[-1] else None,
        )  # fmt: skip
    return table


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"


def learning_curve(
    path: str | Path, runs: Mapping[str, Sequence[Mapping[str, Any]]],
    evaluations: Mapping[str, Sequence[Mapping[str, Any]]], funnel: Sequence[str] = (),
) -> None:  # fmt: skip
    """Draws success and useful transitions against sampled rollouts, and the Execution funnel of the first run that
    has items; a PNG, written atomically.

    runs: for each label the metrics of its iterations: rollouts (so far), success, useful, items. evaluations: for each
    label its held-out points: rollouts, success, low, high. funnel: items to draw, in order; by default all.
    """
    labels = list(dict.fromkeys([*runs, *evaluations]))
    last = max((point["rollouts"] for of in (runs, evaluations) for part in of.values() for point in part), default=1)
    with matplotlib.rc_context(STYLE):
        shown = next((run for run in runs.items() if any(m.get("items") for m in run[1])), None)
        figure = Figure(figsize=(11.0 if shown else 6.8, 6.0), dpi=150, layout="constrained")
        grid = figure.add_gridspec(2, 2 if shown else 1, height_ratios=(3, 2))
        top, bottom = (figure.add_subplot(grid[row, 0]) for row in (0, 1))
        for place, label in enumerate(labels):
            colour = COLOURS[place % len(COLOURS)]
            _line(top, runs.get(label, ()), "success", colour, label)
            _line(bottom, runs.get(label, ()), "useful", colour, label)
            # Intervals at the same place would hide each other.
            aside = (place - (len(labels) - 1) / 2) * 0.01 * last
            _points(top, evaluations.get(label, ()), aside, colour, MARKERS[place % len(MARKERS)])
        for axes, title in ((top, "Success"), (bottom, "Useful transitions")):
            axes.set_title(title)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axes.set_ylim(bottom=0)
            _rollout_axis(axes, last)
        top.set(xlabel=None)
        top.tick_params(labelbottom=False)
        if any(evaluations.values()):
            top.set_title("lines: sampled rollouts, points: held-out tasks, 95 % CI", loc="right", **NOTE)
        if len(labels) > 1:
            top.legend(loc="upper left")
        if shown:
            _funnel(figure.add_subplot(grid[:, 1]), *shown, funnel, last)
        save_figure(figure, path)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Writes a figure as a PNG, atomically."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    figure.savefig(part, format="png")
    os.replace(part, path)


def _line(axes: Axes, metrics: Sequence[Mapping[str, Any]], name: str, colour: str, label: str) -> None:
    """A figure of every iteration, faint, and its running mean."""
    points = [(m["rollouts"], m[name]) for m in metrics if math.isfinite(m.get(name, math.nan))]
    if points:
        x, y = np.array(points, float).T
        axes.plot(x, y, color=colour, alpha=0.25, linewidth=1)
        axes.plot(x, running_mean(y), color=colour, linewidth=2.2, label=label)


def running_mean(y: np.ndarray) -> np.ndarray:
    """The mean of each value and its neighbours: 2 on either side, in long runs more (1/24 of all)."""
    side = max(2, len(y) // 24)
    return np.array([y[max(i - side, 0) : i + side + 1].mean() for i in range(len(y))])


def _points(axes: Axes, points: Sequence[Mapping[str, Any]], aside: float, colour: str, marker: str) -> None:
    """Evaluations with their intervals."""
    if points:
        x, y, low, high = np.array([[p[name] for name in ("rollouts", "success", "low", "high")] for p in points]).T
        error = np.maximum([y - low, high - y], 0)
        axes.errorbar(x + aside, y, error, fmt=marker, ms=6.5, capsize=3, lw=1.4, color=colour, mec="white", zorder=4)


def _funnel(axes: Axes, label: str, metrics: Sequence[Mapping[str, Any]], names: Sequence[str], last: float) -> None:
    """The share of the rollouts in which each item fired: a band an item, as high as the share, and where it ends."""
    metrics = [m for m in metrics if m.get("items")]
    bound = dict.fromkeys(name for m in metrics for name in m["items"])  # a task may bind few of the copies
    names = [name for name in names if name in bound] or list(bound)
    for row, name in enumerate(names):
        base = len(names) - 1 - row
        points = [(m["rollouts"], m["items"][name]) for m in metrics if name in m["items"]]
        axes.axhline(base + 0.9, color="#d0d0d0", linewidth=0.8, linestyle=":")
        if points:
            x, share = np.array(points, float).T
            share = running_mean(share)
            axes.fill_between(x, base, base + 0.9 * share, color=COLOURS[0], alpha=0.3, linewidth=0)
            axes.plot(x, base + 0.9 * share, color=COLOURS[0], linewidth=1.8)
            axes.text(1.01, base + 0.45, f"{share[-1]:.0%}", transform=axes.get_yaxis_transform(), va="center")
    axes.set_yticks(np.arange(len(names))[::-1] + 0.45, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(False)
    axes.hlines(np.arange(len(names)), 0, last, color="#888888", linewidth=0.8)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_ylim(-0.02, len(names))
    axes.set_title(f"Execution items, {label}")
    axes.set_title("share of rollouts, dots: 100 %", loc="right", **NOTE)
    _rollout_axis(axes, last)


def _rollout_axis(axes: Axes, last: float) -> None:
    axes.set_xlabel("sampled rollouts")
    axes.set_xlim(-0.03 * last, 1.03 * last)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))

"""How sample efficiency is shown: a table of budgets, and the curves beside what they come to, as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from trca_jax.evaluation.efficiency import Curve
from trca_jax.evaluation.report import COLOURS, MARKERS, NOTE, STYLE, save_figure

Figures = Mapping[str, Mapping[str, Any]]  # of `efficiency`, by label


def efficiency_table(
    by_kind: Mapping[str, tuple[Mapping[str, Curve], Figures]], budgets: Sequence[float], goal: float
) -> Table:
    """Success after each budget, its mean on the way and the rollouts to a goal. by_kind: for each kind of task its
    curves and their `efficiency`."""
    title = "held-out success in percent; in brackets 95 % intervals, over seeds and games"
    frame = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "collapse_padding": True}
    table = Table(title=title, title_justify="left", **frame)
    table.add_column("", no_wrap=True)
    table.add_column("seeds", justify="right")
    for name in (*(f"{budget:,.0f}" for budget in budgets), "mean", f"rollouts to {goal:.0%}"):
        table.add_column(name, justify="right")
    for kind, (curves, found) in by_kind.items():
        if len(by_kind) > 1:
            table.add_section()
            table.add_row(kind, style="bold")
        for label, figures in found.items():
            shares = [_cell(figure, lambda x: f"{100 * x:.1f}") for figure in (*figures["success"], figures["area"])]
            needed = _cell(figures["reached"], lambda x: "never" if math.isinf(x) else f"{x:,.0f}")
            indent = "  " * (len(by_kind) > 1)
            table.add_row(indent + escape(label), str(len(curves[label].won)), *shares, needed)
    return table


def _cell(figure: tuple[float, float, float], write) -> str:
    value, low, high = figure
    if math.isnan(value):
        return "–"
    return escape(write(value) if math.isnan(low) else f"{write(value)} [{write(low)}, {write(high)}]")


def efficiency_picture(
    path: str | Path, by_kind: Mapping[str, tuple[Mapping[str, Curve], Figures]], budgets: Sequence[float], goal: float
) -> None:
    """Draws the curves of the last kind large, with what they come to beside them, and the other kinds small below; a
    PNG, written atomically."""
    *others, whole = by_kind
    curves, found = by_kind[whole]
    columns = min(max(len(others), 1), 4)
    rows = -(-len(others) // columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11.0, 4.4 + 2.6 * rows), dpi=150, layout="constrained")
        parts = figure.subfigures(1 + bool(rows), 1, height_ratios=(4.4, 2.6 * rows)[: 1 + bool(rows)], squeeze=False)
        top = parts[0, 0].subplot_mosaic([["curve", "area"], ["curve", "reached"]], width_ratios=(3, 2))
        draw_curves(top["curve"], curves, found, budgets, goal)
        top["curve"].legend(loc="upper left")
        top["curve"].set_title("Held-out success")
        top["curve"].set_title("bands: 95 %, over seeds and games", loc="right", **NOTE)
        draw_figures(top["area"], found, "area")
        top["area"].set_title("Mean success on the way")
        top["area"].xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        draw_figures(top["reached"], found, "reached")
        top["reached"].set_title(f"Rollouts to {goal:.0%}")
        top["reached"].xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        if rows:
            small = list(parts[1, 0].subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
            for axes, kind in zip(small, others, strict=False):
                draw_curves(axes, *by_kind[kind], budgets, None)
                axes.set_title(kind, fontsize=8.5)
            for axes in small[len(others) :]:
                axes.set_visible(False)
        save_figure(figure, path)


def draw_curves(
    axes: Axes, curves: Mapping[str, Curve], found: Figures, budgets: Sequence[float], goal: float | None
) -> None:
    """Success against rollouts with bands; dotted lines at the budgets and at the goal."""
    for place, (label, figures) in enumerate(found.items()):
        x = curves[label].rollouts
        mean, low, high = np.array(figures["points"]).reshape(-1, 3).T
        colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
        axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
        axes.plot(x, mean, color=colour, marker=marker, ms=5, mec="white", linewidth=2, label=label)
    for budget in budgets:
        axes.axvline(budget, color="#bbbbbb", linewidth=0.8, linestyle=":", zorder=0)
    if goal is not None:
        axes.axhline(goal, color="#888888", linewidth=0.9, linestyle="--", zorder=0)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("sampled rollouts")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))


def draw_figures(axes: Axes, found: Figures, name: str) -> None:
    """One figure of every label with its interval, label below label; an arrow where it has no upper end."""
    values = np.array([figures[name] for figures in found.values()])
    ends = np.max(values[np.isfinite(values)], initial=0.0) * 1.08
    for row, (value, low, high) in enumerate(values):
        colour, marker = COLOURS[row % len(COLOURS)], MARKERS[row % len(MARKERS)]
        if np.isfinite(low):
            axes.plot([low, min(high, ends)], [row, row], color=colour, linewidth=1.8, solid_capstyle="round")
        if np.isinf(high):
            axes.plot(ends, row, marker=">", color=colour, ms=6, clip_on=False)
        if np.isfinite(value):
            axes.plot(value, row, marker, color=colour, ms=7, mec="white", zorder=3)
        elif np.isinf(value):
            axes.text(ends, row - 0.32, "never", ha="right", va="center", **NOTE)
    axes.set_yticks(range(len(values)), list(found))
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)

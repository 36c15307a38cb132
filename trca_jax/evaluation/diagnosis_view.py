"""How a diagnosis is shown: a table of rollouts and groups, a table of transitions, and both as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from trca_jax.evaluation.diagnose import LABELS, SCOPES
from trca_jax.evaluation.report import COLOURS, NOTE, STYLE, save_figure

FRAME = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "collapse_padding": True, "title_justify": "left"}
_LABEL_COLOURS = dict(zip(LABELS, (COLOURS[4], COLOURS[0], COLOURS[5], "#bbbbbb"), strict=True))


def rollout_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Failure rate over rollouts and success-free rate over groups. rows: a `diagnosis`."""
    table = Table(title="rollouts, and groups of one task; in brackets 95 % intervals", **FRAME)
    table.add_column("task type", overflow="fold")
    for name in ("rollouts", "failed %", "groups", "success-free %"):
        table.add_column(name, justify="right")
    for row in rows:
        if row is rows[-1]:
            table.add_section()
        cells = []
        for count, name in (("rollouts", "failure"), ("groups", "success_free")):
            interval = f"[{100 * row[f'{name}_low']:.0f}, {100 * row[f'{name}_high']:.0f}]"
            cells += [f"{row[count]:,}", f"{percent(row[f'{name}_rate'])} {escape(interval)}"]
        table.add_row(row["kind"], *cells, style="bold" if row is rows[-1] else None)
    return table


def transition_table(rows: Sequence[Mapping[str, Any]], annotator: str) -> Table:
    """What transitions are, in percent of three different wholes, by task type. annotator: who gave the labels."""
    table = Table(title=f"transitions in percent, labelled by {annotator}; useful: all but Other", **FRAME)
    table.add_column("transitions of", overflow="fold")
    for name in ("number", "useful", *(label.capitalize() for label in LABELS)):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_section()
        style = "bold" if row is rows[-1] else None
        table.add_row(row["kind"], style=style)
        for scope, what in zip(SCOPES, ("all rollouts", "failed rollouts", "success-free groups"), strict=True):
            of = row["transitions"][scope]
            labelled = of["count"] - of["unlabelled"]
            shares = [percent(of[label] / labelled if labelled else None) for label in LABELS]
            table.add_row(f"  {what}", f"{of['count']:,}", percent(of["useful"]), *shares, style=style)
    return table


def percent(share: float | None) -> str:
    """A share in percent; a dash where there is none."""
    return "–" if share is None else f"{100 * share:.1f}"


def diagnosis_figure(path: str | Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draws both tables, a line a task type; a PNG, written atomically. rows: a `diagnosis`."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(13.0, 1.9 + 0.42 * len(rows)), dpi=150, layout="constrained")
        axes = figure.subplots(1, 1 + len(SCOPES), sharey=True)
        places = np.arange(len(rows))[::-1]
        _rates(axes[0], rows, places)
        for scope, part in zip(SCOPES, axes[1:], strict=True):
            _shares(part, [row["transitions"][scope] for row in rows], places)
        axes[1].set_title("Transitions: all rollouts")
        axes[2].set_title("failed rollouts")
        axes[3].set_title("success-free groups")
        axes[0].set_yticks(places, [row["kind"] for row in rows])
        for part in axes:
            part.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            part.set(xlim=(0, 1), xticks=(0, 0.25, 0.5, 0.75))
            part.tick_params(axis="y", length=0)
            part.grid(axis="y", visible=False)
        handles, names = axes[1].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower right", ncols=len(LABELS))
        save_figure(figure, path)


def _rates(axes: Axes, rows: Sequence[Mapping[str, Any]], places: np.ndarray) -> None:
    """Failed rollouts and success-free groups with their intervals."""
    for name, what, aside, marker in (("failure", "rollouts", 0.12, "o"), ("success_free", "groups", -0.12, "s")):
        known = [(place, row) for place, row in zip(places, rows, strict=True) if row[f"{name}_rate"] is not None]
        y = np.array([place for place, _ in known]) + aside
        rate, low, high = np.array([[row[f"{name}_{x}"] for x in ("rate", "low", "high")] for _, row in known]).T
        error = np.maximum([rate - low, high - rate], 0)
        colour = COLOURS[1] if what == "rollouts" else COLOURS[6]
        axes.errorbar(rate, y, xerr=error, fmt=marker, ms=5.5, capsize=2.5, lw=1.3, color=colour, label=what)
    axes.set_title("Without success")
    axes.set_title("95 % CI", loc="right", **NOTE)
    axes.legend(loc="best", fontsize=8.5)


def _shares(axes: Axes, counts: Sequence[Mapping[str, Any]], places: np.ndarray) -> None:
    """One bar a task type, of the labels' shares."""
    labelled = np.array([of["count"] - of["unlabelled"] for of in counts])
    left = np.zeros(len(counts))
    for label in LABELS:
        share = np.array([of[label] for of in counts]) / np.maximum(labelled, 1)
        axes.barh(places, share, left=left, height=0.62, color=_LABEL_COLOURS[label], label=label.capitalize())
        for x, y, width in zip(left, places, share, strict=True):
            if width >= 0.07:
                axes.text(x + width / 2, y, f"{width:.0%}", ha="center", va="center", fontsize=8)
        left += share

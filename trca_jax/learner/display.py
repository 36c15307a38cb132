"""What a person sees while a policy learns: a live panel on a terminal, one plain line an iteration elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich.bar import Bar
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_PARTS = ("collect", "judge", "pack", "signals", "score", "credit", "update")
_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """The values as at most `width` blocks, each the mean of its share of them; the height is relative to the largest.

    >>> sparkline([0.0, 0.5, 1.0], 10)
    '▁▅█'
    """
    n = min(width, len(values))
    means = []
    for i in range(n):
        part = values[len(values) * i // n : len(values) * (i + 1) // n]
        means.append(sum(part) / len(part))
    top = max(means, default=0.0) or 1.0
    return "".join(_BLOCKS[int(max(mean, 0.0) / top * 7 + 0.5)] for mean in means)


class Display:
    """Context manager; leaving it by any way gives the terminal back.

    total_iterations: of the whole run. title_lines: what stands above, the first as the panel's title. funnel: names of
    the Execution items in the order in which a task is solved. console: by default standard output.
    """

    def __init__(
        self, total_iterations: int, title_lines: Sequence[str], funnel: Sequence[str] = (),
        console: Console | None = None,
    ):  # fmt: skip
        self._total, self._titles, self._funnel = total_iterations, list(title_lines), list(funnel)
        self._console = console or Console()
        self._history: list[dict[str, Any]] = []
        self._phase, self._turn, self._start = "starting", "", time.monotonic()
        self._phase_start = self._start
        terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(console=self._console, get_renderable=self._panel) if terminal else None

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        else:
            self.message("\n".join(self._titles))
        return self

    def __exit__(self, *_) -> None:
        if self._live:
            self._live.stop()

    def phase(self, name: str) -> None:
        """What is being done from now on."""
        self._phase, self._turn, self._phase_start = name, "", time.monotonic()

    def turn(self, turn: int, live: int) -> None:
        """How far the sampling is: turns taken, rollouts that still play."""
        self._turn = f", turn {turn}, {live} rollouts playing"

    def message(self, text: str) -> None:
        """A line that stays, above the panel."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def iteration(self, metrics: Mapping[str, Any]) -> None:
        """The figures of a finished iteration; whatever is missing is left blank.

        iteration: its index, from 0. success, all_failed_groups, useful, valid, clip_fraction: shares. foundational,
        breakthrough: rewards a rollout. items: share of the rollouts in which each item fired. seconds: of each part
        and `total`. Others: steps (mean episode length), failures, entropy, kl, grad_norm.
        """
        self._history.append(dict(metrics))
        if not self._live:
            figures = [f"{name} {value}" for name, value in self._figures() if value]
            self.message(" | ".join([f"iteration {self._done}/{self._total}", *figures]))

    @property
    def _done(self) -> int:
        return int(self._history[-1].get("iteration", len(self._history) - 1)) + 1 if self._history else 0

    def _successes(self) -> list[float]:
        known = (float(m["success"]) for m in self._history if m.get("success") is not None)
        return [success for success in known if math.isfinite(success)]

    def _figures(self) -> list[tuple[str, str]]:
        """The last iteration in rows of (name, figures)."""
        last = self._history[-1] if self._history else {}
        success = self._successes()
        mean = lambda values: sum(values) / len(values)  # noqa: E731
        shares = {"last": success[-1], "recent": mean(success[-5:]), "first": mean(success[:5])} if success else {}
        return [
            ("success", _join(shares, last="{:.1%}", recent="mean of 5 {:.1%}", first="first 5 {:.1%}")),
            ("groups", _join(last, all_failed_groups="{:.0%} all failed")),
            ("transitions", _join(last, useful="{:.1%} useful", valid="{:.1%} valid")),
            ("reward", _join(last, foundational="r_F {:.2f}", breakthrough="r_B {:.2f}")),
            ("episode", _join(last, steps="{:.1f} steps", failures="{:.0f} failed to run")),
            ("policy", _join(last, entropy="entropy {:.2f}", kl="KL {:.4f}", clip_fraction="clipped {:.1%}",
                             grad_norm="gradient {:.2f}")),
            ("seconds", _join(last.get("seconds", {}), total="{:.1f}", **{name: name + " {:.1f}" for name in _PARTS})),
            ("speed", _join(last.get("speed", {}), tokens_per_s="update {:,.0f} tokens/s", mfu="MFU {:.1%}")),
        ]  # fmt: skip

    def _panel(self) -> Panel:
        now = time.monotonic()
        head = Table.grid(padding=(0, 2))
        head.add_row(
            f"iteration {self._done}/{self._total}",
            ProgressBar(self._total, self._done, width=24),
            f"{_clock(now - self._start)} gone{self._rest()}",
        )
        figures = Table.grid(padding=(0, 2))
        figures.add_column()
        # Wrapped, the figures leave room for the funnel beside them; where that is too little, it stands below.
        figures.add_column(max_width=46 if self._console.width >= 112 else None)
        for name, value in self._figures():
            figures.add_row(Text(name, "dim"), Text(value))
            if name == "success" and value:
                figures.add_row("", Text(sparkline(self._successes(), 40), "green"))
        funnel = Table.grid(padding=(0, 1))
        items = self._history[-1].get("items", {}) if self._history else {}
        for name in self._funnel:
            if name in items:
                share = float(items[name])
                bar = Bar(1.0, 0.0, share, width=14, color="cyan")
                funnel.add_row(Text(name, "dim"), bar, Text(f"{share:4.0%}", "bold"))
        phase = Text(f"{self._phase}{self._turn} ({_clock(now - self._phase_start)})", "yellow")
        titles = [Text(line, "dim") for line in self._titles[1:]]
        body = [Columns([figures, funnel], padding=(0, 4))] if self._history else []
        return Panel(Group(*titles, head, phase, *body), title=Text((self._titles or [""])[0], "bold"))

    def _rest(self) -> str:
        """The time left, as long iterations as the last five were."""
        times = [m["seconds"]["total"] for m in self._history[-5:] if "total" in m.get("seconds", {})]
        return f", {_clock(sum(times) / len(times) * (self._total - self._done))} left" if times else ""


def _join(source: Mapping[str, Any], **texts: str) -> str:
    """Each text with its value in it, of the values that are there."""
    return ", ".join(text.format(float(source[key])) for key, text in texts.items() if source.get(key) is not None)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))

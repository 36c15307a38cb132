"""How an episode that a person plays is shown. Texts of the world are printed as they are, never as markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence

from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from launch.ledger import Entry, Ledger
from trca_jax.credit.trca import TRCASettings
from trca_jax.envs.base import Task
from trca_jax.rollout.episode import Episode
from trca_jax.rubrics.schema import CATEGORIES

_COLOURS = {"evidence": "cyan", "invalidity": "red", "execution": "green"}
_SEPARATOR = re.compile(r" ?\[[A-Z]+\] ?")  # marks such as [SEP], between the parts of a page
_FRAME = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "collapse_padding": True}
_AGAIN = " (again)"


def plain(text: str) -> str:
    """The text without what would steer a terminal or could not be written: control characters and half surrogates
    become the replacement character."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") else "\ufffd" for c in text)


def observed(text: str) -> Text:
    """An observation, its parts' separators dim."""
    shown = Text(plain(text).strip())
    shown.highlight_regex(_SEPARATOR, "dim")
    return shown


def number(value: float) -> str:
    """A reward with its sign; 0 without digits.

    >>> number(0.25), number(-1 / 3), number(0.0)
    ('+0.250', '-0.333', '0')
    """
    return f"{value:+.3f}" if value else "0"


def opening(task: Task, place: str, first: str, ledger: Ledger) -> RenderableType:
    """Before the first action: the task, what it can be credited with, and the first observation."""
    rubric = Table.grid(padding=(0, 1))
    for category in CATEGORIES:
        names = [item.name for item in ledger.items if item.category == category]
        each = next((number(item.weight) for item in ledger.items if item.category == category), "")
        rubric.add_row(Text(category, _COLOURS[category]), each, Text(", ".join(map(plain, names)) or "nothing", "dim"))
    head = Text.assemble((plain(task.instruction), "bold"), "\n", (f"{plain(task.id)} · {plain(place)}", "dim"))
    body = Group(head, "", rubric, Text("Each weight is what one firing adds to r_F; help says more.", "dim"))
    return Group(Panel(body, title=Text(f"{task.benchmark} · {task.kind}"), title_align="left"), observed(first))


def commands(offered: Sequence[str], width: int) -> RenderableType:
    """The commands with their numbers."""
    if not offered:
        return Text("No commands are listed here; write any.", "dim")
    cells = [
        Text.assemble((f"{n:>{len(str(len(offered)))}} ", "dim"), plain(name)) for n, name in enumerate(offered, 1)
    ]
    if max(cell.cell_len for cell in cells) > width // 2:
        return Group(*cells)
    return Columns(cells, padding=(0, 2), column_first=True)


def transition(step: int, action: str | None, after: str, entry: Entry, settings: TRCASettings) -> RenderableType:
    """One action, what came of it, and its credit."""
    head = Text.assemble((f"{step}  ", "dim"), (plain(action) if action is not None else "no action", "bold"))
    return Group(
        Rule(head, align="left", style="dim"), observed(after), Padding(_credit(entry, settings), (1, 0, 0, 2))
    )


def _credit(entry: Entry, settings: TRCASettings) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=max(map(len, CATEGORIES)))
    table.add_column(justify="right", min_width=6)
    table.add_column(overflow="fold", min_width=len("nothing fired"))
    for _ in range(4):
        table.add_column(justify="right")
    head = ("r_F", "r_B", "r_TRCA", "r_env")
    table.add_row(
        "", Text("each", "dim"), "" if entry.parts else Text("nothing fired", "dim"), *(Text(n, "dim") for n in head)
    )
    for part in entry.parts:
        colour = _COLOURS[part.category]
        names = ", ".join(plain(name) + ("" if new or part.weight < 0 else _AGAIN) for name, new in part.fired)
        table.add_row(
            Text(part.category, colour), number(part.weight), Text(names, colour), number(part.foundational),
            number(part.breakthrough),
        )  # fmt: skip
    sums = map(number, (entry.foundational, entry.breakthrough, entry.rubric, entry.r_env))
    table.add_row("", "", Text("together", "dim"), *(Text(cell, "bold") for cell in sums))
    lam = settings.lam
    rule = f"r_TRCA = {1 - lam:.2g}·r_F + {lam:.2g}·r_B    return so far (γ = {settings.gamma:.3g})  "
    context = ", ".join(f"{name} {_value(value)}" for name, value in entry.context.items())
    return Group(
        table,
        Text.assemble((rule, "dim"), (number(entry.so_far), "bold")),
        Text.assemble((f"decided in context {entry.number}: ", "dim"), (plain(context), "dim italic")),
    )


def _value(value: Hashable) -> str:
    """A value of a context field; a dash for one that is empty or not known."""
    if isinstance(value, tuple | frozenset):
        return f"({', '.join(map(_value, value))})" if value else "–"
    return "–" if value is None else str(value)


def closing(episode: Episode, ledger: Ledger) -> RenderableType:
    """The outcome, and the credit of the whole episode."""
    table = Table(**_FRAME)
    for name, side in (("step", "right"), ("context", "right"), ("action", "left"), ("fired", "left")):
        table.add_column(name, justify=side, overflow="fold")
    for name in ("r_F", "r_B", "r_TRCA", "r_env", "return"):
        table.add_column(name, justify="right", no_wrap=True)
    for t, (step, entry) in enumerate(zip(episode.steps, ledger.entries, strict=True), 1):
        fired = Text(", ").join(_fired(entry))
        action = Text(plain(step.action)) if step.action is not None else Text("no action", "dim")
        rewards = (entry.foundational, entry.breakthrough, entry.rubric, entry.r_env, entry.to_come)
        table.add_row(str(t), str(entry.number), action, fired, *map(number, rewards))
    table.add_section()
    sums = (
        sum(getattr(e, name) for e in ledger.entries) for name in ("foundational", "breakthrough", "rubric", "r_env")
    )
    whole = ledger.entries[-1].so_far if ledger.entries else 0.0
    table.add_row("", "", "all", "", *map(number, sums), number(whole), style="bold")
    missing = [plain(i.name) for i in ledger.items if i.weight > 0 and i.name not in ledger.covered]
    return Group(
        Rule(Text(_outcome(episode), "bold green" if episode.won else "bold"), style="dim"),
        table if ledger.entries else Text("no action, no credit", "dim"),
        Text(f"never fired: {', '.join(missing) or 'nothing, every Evidence and Execution item did'}"),
        Text("return: of a step on; that of all is the first step's. An advantage compares the rollouts of a group in "
             "the same context, so one episode has rewards and returns only.", "dim"),
    )  # fmt: skip


def _fired(entry: Entry) -> list[Text]:
    return [
        Text(plain(name) + ("" if new or part.weight < 0 else _AGAIN), _COLOURS[part.category])
        for part in entry.parts
        for name, new in part.fired
    ]


def _outcome(episode: Episode) -> str:
    steps = f"{len(episode.steps)} steps" if len(episode.steps) != 1 else "1 step"
    end = "won" if episode.won else "stopped by the step limit" if episode.truncated else "not won"
    return f"{end} · score {episode.score:g} · {steps}"


def manual(ledger: Ledger) -> RenderableType:
    """What can be typed, and what every item stands for."""
    keys = Table.grid(padding=(0, 2))
    for key, what in (
        ("a command", "as the world lists it, or any other text; an action is read as an agent's is, in lower case"),
        ("a number", "the command of that number"),
        ("?", "the commands that are listed now"),
        ("help", "this text"),
        ("quit", "ends the episode here; so do Ctrl-D and Ctrl-C"),
    ):
        keys.add_row(Text(key, "bold"), Text(what))
    items = Table(**_FRAME)
    items.add_column("item")
    items.add_column("w", justify="right")
    items.add_column("fires when")
    for item in ledger.items:
        items.add_row(Text(plain(item.name), _COLOURS[item.category]), number(item.weight), Text(item.doc))
    return Group(keys, "", items)

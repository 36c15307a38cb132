"""The report of a run as one HTML page that needs nothing else: curves, rubric, task types and the episode viewer."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import Element, tostring

from trca_jax.evaluation.charts import curve, interval, node, series, sparkline
from trca_jax.evaluation.report import summary
from trca_jax.evaluation.timeline import packed

_MARKS = {"evidence": "●", "execution": "▲", "invalidity": "✕"}
_KEYS = (
    (("j", "k"), "steps"),
    (("[", "]"), "rollouts"),
    (("{", "}"), "groups"),
)


@dataclass(frozen=True)
class Item:
    """One judged item: its operator's category, condition and meaning, and the share of rollouts in which it fired,
    in every iteration that binds it."""

    name: str
    category: str
    when: str
    doc: str
    shares: Sequence[float]


def page(
    title: str, facts: Mapping[str, str], notes: Sequence[str], train: Sequence[Mapping[str, Any]],
    held_out: Sequence[Mapping[str, Any]], items: Sequence[Item], data: Mapping[str, Any],
) -> str:  # fmt: skip
    """The whole page. facts: what the run is, shown under the title. notes: what a reader must know. train: metrics of
    the iterations. held_out: evaluations, each with iteration, rollouts, success, low, high, episodes and results (as
    `summary` reads them). items: as the judge numbers them. data: a `timeline`.

    The page loads nothing, and its policy lets no script and no style run but its own. Texts of episodes stand in it as
    JSON, and are shown as text alone.
    """
    folder = files("trca_jax.evaluation") / "viewer"
    style, script = ((folder / name).read_text("utf-8") for name in ("viewer.css", "viewer.js"))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    content = {**data, "items": [{k: v for k, v in asdict(item).items() if k != "shares"} for item in items]}
    body = [
        _header(title, facts, train, held_out),
        *(node("p", note, class_="note") for note in notes),
        *_curves(train, held_out),
        *_tasks(held_out),
        *_rubric(items),
        _viewer(data),
    ]
    document = node(
        "html",
        node(
            "head",
            node("meta", charset="utf-8"),
            node("meta", name="viewport", content="width=device-width, initial-scale=1"),
            node("meta", name="color-scheme", content="light dark"),
            node("meta", http_equiv="Content-Security-Policy", content=policy),
            node("title", title),
            node("style", style),
        ),
        node("body", node("main", body), node("script", packed(content), type="application/json", id="data"),
             node("script", script)),
        lang="en",
    )  # fmt: skip
    return "<!doctype html>\n" + tostring(document, encoding="unicode", method="html") + "\n"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _header(title, facts, train, held_out) -> Element:
    figures = []
    if held_out:
        first, last = held_out[0], held_out[-1]
        before = f"from {first['success']:.1%} " if last is not first else ""
        under = f"{before}on {last['episodes']} held-out episodes; 95% interval {last['low']:.1%} – {last['high']:.1%}"
        figures.append(("success", f"{last['success']:.1%}", under))
    if train:
        for name, what in (("useful", "useful transitions"), ("all_failed_groups", "groups without a success")):
            if all(isinstance(record.get(name), float) for record in (train[0], train[-1])):
                under = f"from {train[0][name]:.0%}, in the last iteration's rollouts"
                figures.append((what, f"{train[-1][name]:.0%}", under))
        figures.append(("sampled rollouts", f"{train[-1]['rollouts']:,}", f"in {len(train):,} iterations"))
    rows = [node("div", node("dt", name), node("dd", value)) for name, value in facts.items()]
    shown = [
        node("div", node("p", name, class_="what"), node("p", value, class_="figure"), node("p", under, class_="under"))
        for name, value, under in figures
    ]
    return node("header", node("h1", title), node("dl", rows, class_="facts"), node("div", shown, class_="figures"))


def _curves(train, held_out) -> Iterable[Element]:
    if not train:
        return
    charts = [
        curve("Success", [series("sampled rollouts", "a", train, "success")], held_out),
        curve("Useful transitions", [
            series("all rollouts", "a", train, "useful"), series("failed rollouts", "b", train, "useful_failed"),
        ]),
        curve("Groups without a success", [series("sampled groups", "a", train, "all_failed_groups")]),
    ]  # fmt: skip
    under = "By sampled rollouts. Pale: every iteration; strong: the running mean."
    yield node("section", node("h2", "Learning curves"), node("p", under, class_="under"),
               node("div", charts, class_="charts"), id="curves")  # fmt: skip


def _tasks(held_out) -> Iterable[Element]:
    if not held_out:
        return
    chosen = [held_out[0], held_out[-1]] if len(held_out) > 1 else held_out
    tables = [{row["kind"]: row for row in summary(record["results"])} for record in chosen]
    heads = [f"after {record['iteration']:,} iterations" if record["iteration"] else "start" for record in chosen]
    rows = []
    for kind, row in tables[-1].items():
        name = [part for word in kind.split("_") for part in (node("wbr"), word, "_")][1:-1]
        cells = [node("th", name, scope="row"), node("td", f"{row['episodes']:,}", class_="number")]
        for table in tables:
            cells.append(_success(table.get(kind)))
        steps = "–" if row["steps"] != row["steps"] else f"{row['steps']:.1f}"
        cells.append(node("td", steps, class_="number"))
        rows.append(node("tr", cells, class_="all" if kind == "all" else ""))
    columns = ["task type", "episodes", *heads, "steps if won"]
    table = node(
        "table", node("thead", node("tr", [node("th", name, scope="col") for name in columns])), node("tbody", rows)
    )
    under = f"Success on held-out tasks of {chosen[-1].get('split', 'the split')}, in percent with 95% intervals."
    yield node("section", node("h2", "Task types"), node("p", under, class_="under"),
               node("div", table, class_="wide"), id="tasks")  # fmt: skip


def _success(row: Mapping[str, Any] | None) -> Element:
    if row is None or not row["episodes"]:
        return node("td", "–", class_="number")
    text = f"{100 * row['low']:.0f}–{100 * row['high']:.0f}"
    return node("td", node("b", f"{100 * row['success']:.1f}"), " ", node("span", text, class_="range"),
                interval(row["success"], row["low"], row["high"]), class_="success")  # fmt: skip


def _rubric(items: Sequence[Item]) -> Iterable[Element]:
    rows = []
    for category in _MARKS:
        for item in items:
            if item.category == category and item.shares:
                change = f"{item.shares[0]:.0%} → {item.shares[-1]:.0%}" if len(item.shares) > 1 else ""
                text = node("span", node("b", item.name), node("code", item.when))
                mark = node("span", _MARKS[category], class_=f"mark {category}", title=category)
                rows.append(node("li", mark, text, sparkline(item.shares),
                                 node("span", change or f"{item.shares[0]:.0%}", class_="number")))  # fmt: skip
    if rows:
        legend = [node("span", node("i", mark, class_=f"mark {name}"), name, class_="entry")
                  for name, mark in _MARKS.items()]  # fmt: skip
        under = "Share of the rollouts in which each operator fired, over the iterations."
        yield node("section", node("h2", "Rubric"), node("p", under, class_="under"),
                   node("p", legend, class_="legend"), node("ul", rows, class_="rubric"), id="rubric")  # fmt: skip


def _viewer(data: Mapping[str, Any]) -> Element:
    keys = [
        node("span", [x for key in names for x in (node("kbd", key), " ")], what, class_="entry")
        for names, what in _KEYS
    ]
    if not any(file["groups"] for file in data["files"]):
        content = [node("p", "The run folder holds no episodes.", class_="note")]
    else:
        content = [node("p", keys, class_="legend keys"), node("div", id="viewer"),
                   node("noscript", node("p", "The episodes are shown by a script.", class_="note"))]  # fmt: skip
    return node("section", node("h2", "Episodes"), content, id="episodes")

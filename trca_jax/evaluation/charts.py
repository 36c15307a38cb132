"""Small pictures as inline SVG, coloured by the style sheet of the page that they stand in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from matplotlib.ticker import MaxNLocator

from trca_jax.evaluation.report import running_mean

_WIDTH, _HEIGHT = 360, 210  # as wide as a phone's page, so that letters keep their size there
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 10, 26
_TOPS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def node(tag: str, *content: str | Element | Iterable, **attributes: Any) -> Element:
    """An element of the page; texts are escaped when it is written. class_ is class, view_box viewBox."""
    names = {"class_": "class", "view_box": "viewBox"}
    named = {names.get(name, name.replace("_", "-")): str(value) for name, value in attributes.items()}
    element = Element(tag, named)
    for part in content:
        for child in [part] if isinstance(part, str | Element) else part:
            if isinstance(child, Element):
                element.append(child)
            elif len(element):
                element[-1].tail = (element[-1].tail or "") + child
            else:
                element.text = (element.text or "") + child
    return element


def smooth(y: np.ndarray) -> np.ndarray:
    """The running mean; of fewer than ten values they themselves, as it would hide what there is to see."""
    return running_mean(y) if len(y) >= 10 else y


@dataclass(frozen=True)
class Series:
    """A share in every iteration. name: for the legend. style: of the style sheet. points: (rollouts, share)."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]


def series(name: str, style: str, metrics: Sequence[Mapping[str, Any]], field: str) -> Series:
    """The finite values of a field of the iterations' metrics."""
    found = [(m["rollouts"], m.get(field)) for m in metrics]
    return Series(name, style, [(x, y) for x, y in found if isinstance(y, int | float) and math.isfinite(y)])


def curve(title: str, lines: Sequence[Series], held_out: Sequence[Mapping[str, Any]] = ()) -> Element:
    """A figure of shares against sampled rollouts: every iteration faintly, the running mean, and held-out points
    (rollouts, success, low, high) with their intervals."""
    last = max((x for x, _ in (p for line in lines for p in line.points)), default=1)
    last = max(last, *(p["rollouts"] for p in held_out), 1) if held_out else last
    highest = max([y for line in lines for _, y in line.points] + [p["high"] for p in held_out], default=1)
    top = next((t for t in _TOPS if t >= highest), 1.0)

    def x(value: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * value / last, 1)

    def y(value: float) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top, 1)

    parts = []
    for share in (0, top / 2, top):
        parts.append(node("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(share), y2=y(share), class_="grid"))
        parts.append(node("text", f"{share:.0%}", x=_LEFT - 6, y=y(share) + 4, class_="tick end"))
    for tick in MaxNLocator(4, integer=True).tick_values(0, last):
        if 0 <= tick <= last:
            parts.append(node("text", f"{tick:,.0f}", x=x(tick), y=_HEIGHT - 8, class_="tick middle"))
    for line in lines:
        if line.points:
            xs, ys = np.array(line.points, float).T
            parts.append(node("path", d=_path(map(x, xs), map(y, ys)), class_=f"faint {line.style}"))
            parts.append(node("path", d=_path(map(x, xs), map(y, smooth(ys))), class_=f"line {line.style}"))
    for p in held_out:
        place = x(p["rollouts"])
        parts.append(node("line", x1=place, x2=place, y1=y(p["low"]), y2=y(p["high"]), class_="whisker"))
        parts.append(node("circle", cx=place, cy=y(p["success"]), r=4, class_="point"))
    keys = [node("span", node("i", class_=f"key {line.style}"), line.name, class_="entry") for line in lines]
    if held_out:
        keys.append(node("span", node("i", class_="key dot"), "held out, 95% interval", class_="entry"))
    picture = node("svg", parts, view_box=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=f"{title}, by rollouts")
    return node("figure", node("figcaption", node("h3", title), node("p", keys, class_="legend")), picture)


def sparkline(shares: Sequence[float]) -> Element:
    """The running mean of shares from 0 to 1 as a small filled line; a dot for one alone."""
    width, height = 120, 26
    xs = np.linspace(2, width - 2, max(len(shares), 2))
    ys = height - 2 - (height - 4) * smooth(np.array([*shares, *shares][: max(len(shares), 2)], float))
    line = _path(xs.round(1), ys.round(1))
    area = f"{line}L{xs[-1]:.1f} {height - 2}L{xs[0]:.1f} {height - 2}Z"
    parts = node("path", d=area, class_="area"), node("path", d=line, class_="stroke")
    return node("svg", parts, view_box=f"0 0 {width} {height}", class_="spark", aria_hidden="true")


def interval(share: float, low: float, high: float) -> Element:
    """A share with its interval on a scale from 0 to 1."""
    x = lambda value: round(4 + 112 * value, 1)  # noqa: E731
    parts = (
        node("line", x1=4, x2=116, y1=7, y2=7, class_="track"),
        node("line", x1=x(low), x2=x(high), y1=7, y2=7, class_="range"),
        node("circle", cx=x(share), cy=7, r=4, class_="point"),
    )
    return node("svg", parts, view_box="0 0 120 14", class_="interval", aria_hidden="true")


def _path(xs: Iterable[float], ys: Iterable[float]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in zip(xs, ys, strict=True))

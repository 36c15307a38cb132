"""Pictures: values stand at their places, and texts are escaped."""

import re
from xml.etree.ElementTree import tostring

import numpy as np
import pytest

from trca_jax.evaluation.charts import curve, interval, node, series, smooth, sparkline


def test_a_node_keeps_the_order_of_its_content_and_escapes_it():
    made = node("p", "a<b ", node("b", "&"), " c", [" d", node("i"), "e"], class_="x", aria_label='"q>')
    assert tostring(made, encoding="unicode", method="html") == (
        '<p class="x" aria-label="&quot;q&gt;">a&lt;b <b>&amp;</b> c d<i></i>e</p>'
    )


def test_a_series_leaves_out_what_is_no_number():
    metrics = [{"rollouts": 8 * i, "success": value} for i, value in enumerate((0.5, None, float("nan"), 1))]
    assert series("s", "a", [*metrics, {"rollouts": 99}], "success").points == [(0, 0.5), (24, 1)]


def points(path):
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](\S+?) ([\d.]+)", path)]


def test_a_curve_has_its_values_at_their_places():
    line = series("all", "a", [{"rollouts": n, "success": n / 1000} for n in (0, 50, 100)], "success")
    held_out = [{"rollouts": 100, "success": 0.1, "low": 0.05, "high": 0.2}]
    figure = curve("Success", [line], held_out)
    svg = figure.find("svg")
    path = points(svg.findall("path")[-1].get("d"))
    grid = {text.text: float(text.get("y")) - 4 for text in svg.findall("text") if "%" in text.text}
    assert list(grid) == ["0%", "10%", "20%"]  # the highest is the end of the interval
    assert path[0][1] == grid["0%"] and path[-1][1] == pytest.approx(grid["10%"])
    assert path[1][0] == pytest.approx((path[0][0] + path[2][0]) / 2)
    dot, whisker = svg.find("circle"), svg.findall("line")[-1]
    assert float(dot.get("cy")) == pytest.approx(grid["10%"]) and float(dot.get("cx")) == path[-1][0]
    assert (float(whisker.get("y1")), float(whisker.get("y2"))) == pytest.approx(
        (grid["0%"] + (grid["20%"] - grid["0%"]) / 4, grid["20%"]), abs=0.1
    )
    ticks = [float(t.text) for t in svg.findall("text") if "%" not in t.text]
    assert ticks[0] == 0 and 50 <= ticks[-1] <= 100
    assert "held out" in "".join(figure.itertext()) and "held out" not in "".join(curve("x", [line]).itertext())


@pytest.mark.parametrize("values", [[], [1.0]])
def test_a_curve_is_drawn_whatever_there_is(values):
    line = series("all", "a", [{"rollouts": 8, "success": v} for v in values], "success")
    svg = curve("Success", [line]).find("svg")
    assert len(svg.findall("path")) == 2 * len(values) and svg.get("viewBox") == "0 0 360 210"


def test_few_values_are_not_smoothed():
    y = np.arange(12.0) ** 2
    assert smooth(y[:9]).tolist() == y[:9].tolist() and smooth(y)[0] == (0 + 1 + 4) / 3


def test_a_sparkline_is_high_where_the_share_is():
    line = points(sparkline([0.0, 1.0, 0.5]).findall("path")[1].get("d"))
    assert [y for _, y in line] == [24, 2, 13] and [x for x, _ in line] == [2, 60, 118]
    assert [y for _, y in points(sparkline([1.0]).findall("path")[1].get("d"))] == [2, 2]


def test_an_interval_spans_from_low_to_high():
    lines, dot = interval(0.5, 0.25, 1.0).findall("line"), interval(0.5, 0.25, 1.0).find("circle")
    assert (float(lines[1].get("x1")), float(lines[1].get("x2")), float(dot.get("cx"))) == (32, 116, 60)

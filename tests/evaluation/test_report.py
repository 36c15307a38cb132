"""Intervals against known values, the table's figures, and that a curve is drawn whatever there is to draw."""

import io
import math

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console
from scipy.stats import binomtest

from trca_jax.evaluation.report import evaluation_table, learning_curve, macro, running_mean, summary, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_has_the_known_values(successes, n, low, high):
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (3, 7), (37, 280), (279, 280), (280, 280)])
def test_wilson_equals_scipy(successes, n):
    expected = binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_wilson_knows_nothing_without_trials_and_refuses_nonsense():
    assert wilson(0, 0) == (0.0, 1.0)
    for successes, n in ((3, 2), (-1, 2), (0, -1)):
        with pytest.raises(ValueError, match="expected a number from 0 to"):
            wilson(successes, n)


def record(task, kind, won, steps, failure=None, score=None):
    score = float(won) if score is None else score
    return {"task": task, "kind": kind, "won": won, "score": score, "steps": steps, "failure": failure}


RESULTS = [
    record("b1", "pick", True, 6), record("b1", "pick", False, 25), record("b2", "pick", True, 9),
    record("b2", "pick", False, 3, "worker 0 died"), record("a1", "heat", False, 25), record("a1", "heat", False, 25),
    record("a2", "heat", False, 0, "worker 0 died"),
]  # fmt: skip


def test_summary_counts_failures_apart_and_steps_of_the_won_only():
    heat, pick, total = summary(RESULTS)
    assert (heat["kind"], pick["kind"], total["kind"]) == ("heat", "pick", "all")
    assert (pick["games"], pick["episodes"], pick["won"], pick["failures"]) == (2, 3, 2, 1)
    assert pick["success"] == pytest.approx(2 / 3) and pick["steps"] == 7.5
    assert (pick["low"], pick["high"]) == wilson(2, 3)
    assert (heat["games"], heat["episodes"], heat["success"], heat["failures"]) == (1, 2, 0.0, 1)
    assert math.isnan(heat["steps"])
    assert (total["games"], total["episodes"], total["success"], total["failures"]) == (3, 5, 0.4, 2)
    assert math.isnan(summary([])[0]["success"])


def test_macro_weighs_kinds_alike_and_leaves_out_those_not_played():
    rows = summary([*RESULTS, record("c", "cool", False, 0, "worker 0 died"), record("d", "dry", True, 2, score=0.5)])
    assert macro(rows) == pytest.approx((0 + 2 / 3 + 1) / 3) and macro(rows, "score") == pytest.approx(
        (2 / 3 + 0.5) / 3
    )
    assert math.isnan(macro(summary([])))


def printed(results, width=80):
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(evaluation_table(results))
    return console.file.getvalue()


def test_table_shows_every_kind_and_the_failures_only_if_there_are_any():
    text = printed(RESULTS)
    row = next(line.split() for line in text.splitlines() if line.startswith("pick"))
    assert row == ["pick", "2", "3", "66.7", "20.8–93.9", "7.5", "1"]
    assert next(line for line in text.splitlines() if line.startswith("heat")).split()[-2:] == ["–", "1"]
    assert "failed" in text and "failed" not in printed([r for r in RESULTS if not r["failure"]])
    assert "all" in printed([])
    assert next(line.split() for line in text.splitlines() if line.startswith("mean"))[-1] == "33.3"
    assert "mean" not in printed([r for r in RESULTS if r["kind"] == "pick"])
    assert "score" not in text
    graded = [*RESULTS, record("b3", "pick", False, 4, score=0.5), record("b4", "pick", False, 4, "died", score=0.9)]
    assert next(line.split() for line in printed(graded).splitlines() if line.startswith("pick"))[5] == "62.5"
    long = record("t", "pick_clean_then_place_in_recep", True, 9)
    assert long["kind"] in printed([long])


def test_running_mean_is_centred_and_short_at_the_ends():
    assert running_mean(np.array([0.0, 1, 2, 3, 4, 10])) == pytest.approx([1, 1.5, 2, 4, 4.75, 17 / 3])
    assert running_mean(np.ones(1)) == [1.0]


def metrics(n, items=True):
    return [
        {"iteration": i, "rollouts": 8 * (i + 1), "success": i / n, "useful": 0.2}
        | ({"items": {"taken": 0.5} | ({"placed": 0.1} if i else {})} if items else {})
        for i in range(n)
    ]


POINT = {"iteration": 0, "rollouts": 0, "success": 0.1, "low": 0.05, "high": 0.2}


@pytest.mark.parametrize(
    ("runs", "evaluations"),
    [
        ({"trca": metrics(12), "grpo": metrics(12, items=False)}, {"trca": [POINT], "grpo": [POINT]}),
        ({"one": metrics(1)}, {"other": [POINT]}),
        ({"nothing": []}, {"nothing": []}),
        ({"gaps": [{"iteration": 0, "rollouts": 8}, {"iteration": 1, "rollouts": 16, "success": math.nan}]}, {}),
        ({}, {}),
    ],
)
def test_a_curve_is_drawn_whatever_there_is(tmp_path, recwarn, runs, evaluations):
    path = tmp_path / "curve.png"
    learning_curve(path, runs, evaluations, ["taken", "placed", "never"])
    image = imread(path)
    assert image.shape[0] == 900 and image[..., :3].std() > 0.01
    assert (image.shape[1] > 1500) == any(m.get("items") for r in runs.values() for m in r)
    assert [p.name for p in tmp_path.iterdir()] == ["curve.png"] and not recwarn.list


def test_a_curve_that_cannot_be_drawn_leaves_the_old_one(tmp_path):
    path = tmp_path / "curve.png"
    path.write_bytes(b"old")
    with pytest.raises(KeyError):
        learning_curve(path, {"trca": [{"success": 0.1}]}, {})
    assert path.read_bytes() == b"old"

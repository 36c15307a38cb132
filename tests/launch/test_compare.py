"""Runs side by side: what is added up over seeds, and what cannot be compared."""

import json

import pytest

from launch.compare import averaged, pooled, reached, read
from trca_jax.evaluation.report import wilson


def run(folder, method, held_out, success, **other):
    """A run folder. held_out: (rollouts, won, of). success: of each iteration of four rollouts."""
    folder.mkdir()
    record = {"training": "games", "evaluation": "others", "rubric": "r", "weights": "w"} | other
    (folder / "run.json").write_text(json.dumps(record | {"config": {"method": method}}))
    lines = [
        {"kind": "eval", "iteration": 0, "rollouts": rollouts, "success": won / of, "episodes": of}
        for rollouts, won, of in held_out
    ]
    for i, value in enumerate(success):
        figures = dict.fromkeys(("useful", "useful_failed", "all_failed_groups", "foundational", "breakthrough"), 0.5)
        figures |= {"rollouts": 4 * (i + 1), "success": value, "items": {"taken": value}}
        lines.append({"kind": "train", "iteration": i} | figures)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_seeds_are_added_up_and_unfinished_points_left_out(tmp_path):
    folders = [
        run(tmp_path / "a", "trca", [(0, 1, 10), (8, 4, 10)], [0.1, 0.5]),
        run(tmp_path / "b", "trca", [(0, 0, 30)], [0.3]),
        run(tmp_path / "c", "grpo", [(0, 2, 10)], [0.0]),
    ]
    runs = read(folders)
    assert {method: len(own) for method, own in runs.items()} == {"trca": 2, "grpo": 1}
    (point,) = pooled(runs["trca"])
    low, high = wilson(1, 40)
    assert point == {"rollouts": 0, "success": 1 / 40, "low": low, "high": high, "episodes": 40, "seeds": [0.1, 0.0]}
    (first,) = averaged(runs["trca"])
    assert first["success"] == pytest.approx(0.2) and first["items"] == {"taken": pytest.approx(0.2)}
    assert first["rollouts"] == 4


def test_where_a_success_is_first_reached():
    points = [{"rollouts": n, "success": s} for n, s in ((0, 0.1), (100, 0.3), (200, 0.2), (300, 0.6))]
    assert reached(points, 0.2) == pytest.approx(50)
    assert reached(points, 0.5) == pytest.approx(275)
    assert reached(points, 0.05) == 0 and reached(points, 0.7) is None and reached([], 0.1) is None


@pytest.mark.parametrize("part", ["training", "evaluation", "rubric", "weights"])
def test_runs_that_differ_in_more_than_method_and_seed_are_refused(tmp_path, part):
    folders = [run(tmp_path / "a", "trca", [], [0.1]), run(tmp_path / "b", "grpo", [], [0.1], **{part: "else"})]
    with pytest.raises(ValueError, match=f"b and .*a differ in {part}"):
        read(folders)


def test_a_run_without_metrics_is_named(tmp_path):
    folder = run(tmp_path / "a", "trca", [], [])
    with pytest.raises(ValueError, match="has no metrics yet"):
        read([folder])

"""A run folder as rows: by kind and in all, with how training went in between."""

import json

import pytest
from run_folders import write_run

from launch.results import run_rows
from trca_jax.evaluation.report import wilson
from trca_jax.evaluation.results import KEYS


def test_every_evaluation_gives_a_row_a_kind_and_one_for_all(tmp_path):
    held_out = [
        (0, {"heat": "0000", "cool": "0-"}),
        (1, {"heat": "1100", "cool": "01"}),
        (3, {"heat": "1", "cool": "1"}),
    ]
    folder = write_run(tmp_path / "a", "trca", held_out, [0.1, 0.3, 0.5], seed=7, setting="λ=1")
    rows = run_rows(folder)
    assert [(r["iteration"], r["rollouts"], r["kind"], r["n"], r["won"]) for r in rows] == [
        (0, 0, "cool", 1, "0-"), (0, 0, "heat", 4, "0000"), (0, 0, "all", 5, "00000-"),
        (1, 4, "cool", 2, "01"), (1, 4, "heat", 4, "1100"), (1, 4, "all", 6, "110001"),
        (3, 12, "cool", 1, "1"), (3, 12, "heat", 1, "1"), (3, 12, "all", 2, "11"),
    ]  # fmt: skip
    for row in rows:
        assert set(KEYS) <= set(row)
        assert (row["method"], row["setting"], row["task_types"], row["seed"]) == ("trca", "λ=1", "heat+cool", 7)
        assert row["success"] == pytest.approx(row["won"].count("1") / row["n"], abs=1e-5)
        assert (row["low"], row["high"]) == pytest.approx(wilson(row["won"].count("1"), row["n"]), abs=1e-5)
    assert "useful" not in rows[2]  # nothing was trained before
    assert (rows[5]["useful"], rows[5]["sampled_success"]) == (0.1, 0.1)
    assert (rows[8]["useful"], rows[8]["sampled_success"]) == (0.25, 0.4)  # of iterations 1 and 2
    assert "useful" not in rows[7]


def test_games_that_are_played_several_times(tmp_path):
    rows = run_rows(write_run(tmp_path / "a", "grpo", [(0, {"heat": "110-"})], repeats=2))
    assert [(r["setting"], r["kind"], r["repeats"], r["won"]) for r in rows] == [("", "all", 2, "110-")]


@pytest.mark.parametrize("content", [None, "", '{"results": ', "[]", '{"results": []}', '{"results": [{"repeat": 1}]}'])
def test_an_evaluation_that_cannot_be_read_is_named(tmp_path, content):
    folder = write_run(tmp_path / "a", "trca", [(2, {"heat": "1"})])
    path = folder / "evaluation-2.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ValueError, match=r"evaluation-2\.json cannot be read .*restore it, or delete"):
        run_rows(folder)


def test_a_record_of_another_shape_is_refused(tmp_path):
    folder = write_run(tmp_path / "a", "trca", [(0, {"heat": "1"})])
    (folder / "run.json").write_text(json.dumps({"config": {"method": "trca"}, "weights": "w"}))
    with pytest.raises(ValueError, match="written by another version: its config has no field 'env'"):
        run_rows(folder)

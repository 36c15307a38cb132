"""Runs side by side: what is averaged over seeds, what is shown, and what cannot be compared."""

import io
import json
from contextlib import redirect_stdout

import pytest
from run_folders import write_run

from launch import compare
from launch.compare import averaged, budgets_of, read
from trca_jax.evaluation.efficiency import curves

KINDS = [
    (0, {"heat": "0000", "cool": "0001"}),
    (1, {"heat": "1000", "cool": "0011"}),
    (2, {"heat": "1110", "cool": "1101"}),
]


def test_seeds_are_gathered_under_what_differs(tmp_path):
    folders = [
        write_run(tmp_path / "a", "trca", KINDS, [0.1, 0.5]),
        write_run(tmp_path / "b", "trca", KINDS[:2], [0.3], seed=1),
        write_run(tmp_path / "c", "grpo", KINDS, [0.0]),
    ]
    rows, runs = read(folders)
    assert {method: len(own) for method, own in runs.items()} == {"trca": 2, "grpo": 1}
    assert {(row["method"], row["seed"]) for row in rows} == {("trca", 0), ("trca", 1), ("grpo", 0)}
    (first,) = averaged(runs["trca"])
    assert first["success"] == pytest.approx(0.2) and first["items"] == {"taken": pytest.approx(0.2)}
    assert first["rollouts"] == 4
    settings = [
        write_run(tmp_path / name, "trca", KINDS, [0.1], setting=setting)
        for name, setting in (("d", "λ=0"), ("e", "λ=1"))
    ]
    assert set(read(settings)[1]) == {"λ=0", "λ=1"}


def test_the_budgets_are_those_asked_for_or_shared():
    row = {"method": "trca", "setting": "", "task_types": "t", "kind": "all", "repeats": 1, "won": "1", "seed": 0}
    short = curves(
        [row | {"rollouts": n} for n in (0, 8)] + [row | {"method": "grpo", "rollouts": n} for n in (0, 8, 16)]
    )
    assert budgets_of(short, []) == [0, 8] and budgets_of(short, ["16", "4"]) == [16, 4]
    assert budgets_of(curves([row | {"rollouts": n} for n in (0, 6400)]), []) == [1920, 3840, 6400]
    for wrong in (["1.9K"], ["-5"], [""]):
        with pytest.raises(ValueError, match=r"--budgets=.*expected whole numbers"):
            budgets_of(short, wrong)


def test_the_command_shows_tables_pictures_and_figures(commands, tmp_path):
    folders = [
        write_run(tmp_path / "a", "trca", KINDS, [0.1, 0.5]),
        write_run(tmp_path / "b", "grpo", [(i, dict.fromkeys(kinds, "0001")) for i, kinds in KINDS], [0.0, 0.1]),
    ]
    with redirect_stdout(io.StringIO()) as out:
        picture = tmp_path / "c.png"
        assert commands.call(compare.main, *map(str, folders), f"--picture={picture}", "--goal=0.5") == 0
    text = out.getvalue()
    assert "rollouts to 50%" in text and "heat" in text and "never" in text
    figures = json.loads(picture.with_suffix(".json").read_text())
    assert figures["budgets"] == [0, 4, 8] and figures["goal"] == 0.5
    assert [p["success"] for p in figures["held_out"]["trca"]] == [0.125, 0.375, 0.75]
    assert figures["efficiency"]["all"]["trca"]["area"][0] == pytest.approx((0.25 + 0.5625) / 2)
    assert figures["efficiency"]["all"]["trca"]["reached"][0] == pytest.approx(4 + 4 / 3)
    assert figures["efficiency"]["all"]["grpo"]["reached"][0] is None  # never
    assert figures["efficiency"]["cool"]["trca"]["success"][1][0] == 0.5
    for path in (picture, tmp_path / "c-efficiency.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("part", ["training", "evaluation", "rubric", "weights"])
def test_runs_that_differ_in_more_than_method_and_seed_are_refused(tmp_path, part):
    folders = [
        write_run(tmp_path / "a", "trca", [], [0.1]),
        write_run(tmp_path / "b", "grpo", [], [0.1], **{part: "else"}),
    ]
    with pytest.raises(ValueError, match=f"b and .*a differ in {part}"):
        read(folders)


def test_a_run_without_metrics_is_named(tmp_path):
    folder = write_run(tmp_path / "a", "trca", [], [])
    with pytest.raises(ValueError, match="has no metrics yet"):
        read([folder])

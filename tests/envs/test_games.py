"""Loading real games: which, how many, in what order, and what is said when something is wrong."""

import json
import lzma
import pickle
import shutil
from pathlib import Path

import pytest

from trca_jax.envs.alfworld.games import TASK_TYPES, load_games
from trca_jax.envs.base import TaskSet


@pytest.fixture(scope="session")
def folder(shared_data):
    return shared_data / "alfworld"


@pytest.fixture(scope="session")
def archive(folder):
    return str(folder / "alfworld_games_json_2.1.2.jsonl.xz")


def kinds(games: TaskSet) -> list[int]:
    return [sum(task.kind == kind for task in games.tasks) for kind in TASK_TYPES]


def test_folder_holds_the_subset_and_takes_both_spellings_of_its_path(folder):
    for split, each in (("train", 12), ("valid_seen", 3), ("valid_unseen", 3)):
        games = load_games(str(folder), split)
        assert kinds(games) == [each] * 6
        assert load_games(str(folder / "json_2.1.1"), split).tasks == games.tasks


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("train", [790, 308, 650, 459, 533, 813]),
        ("valid_seen", [35, 13, 27, 16, 25, 24]),
        ("valid_unseen", [24, 18, 31, 23, 21, 17]),
    ],
)
def test_archive_holds_the_release(archive, split, expected):
    games = load_games(archive, split)
    assert kinds(games) == expected
    ids = [task.id for task in games.tasks]
    assert ids == sorted(set(ids)) and all(i.startswith(f"{split}/") for i in ids)
    assert len(load_games(archive, "valid_train").tasks) == 200


def test_folder_and_archive_agree_game_by_game(folder, archive):
    whole = {task.id: task for task in load_games(archive, "valid_unseen").tasks}
    for task in load_games(str(folder), "valid_unseen").tasks:
        other = whole[task.id]
        assert (task.instruction, task.kind) == (other.instruction, other.kind)
        assert task.payload.problem_text() == other.payload.problem_text()
        assert task.payload.walkthrough == other.payload.walkthrough
        assert task.payload.grammar == other.payload.grammar and task.payload.domain == other.payload.domain


def test_a_task_reads_as_the_game_says(folder):
    task = next(t for t in load_games(str(folder), "valid_seen").tasks if "Plate-None-Cabinet-7" in t.id)
    assert task.kind == "pick_cool_then_place_in_recep"
    assert task.instruction in ("cool some plate and put it in cabinet.", "put a cool plate in cabinet.")
    file = folder / "json_2.1.1" / task.id / "game.tw-pddl"
    assert task.payload.problem_text() == json.loads(file.read_text())["pddl_problem"]
    assert len(pickle.dumps(task)) < 60_000


def test_a_drawn_sample_is_even_over_types_and_fixed_by_its_seed(archive):
    drawn = load_games(archive, "train", count=20, seed=3)
    assert sorted(kinds(drawn)) == [3, 3, 3, 3, 4, 4]
    assert drawn == load_games(archive, "train", count=20, seed=3)
    assert drawn.tasks != load_games(archive, "train", count=20, seed=4).tasks
    # A type that runs out (13 look games) leaves its place to the others.
    assert kinds(load_games(archive, "valid_seen", count=100))[1] == 13
    only = load_games(archive, "valid_seen", task_types=["look_at_obj_in_light"], count=5)
    assert kinds(only) == [0, 5, 0, 0, 0, 0]


def test_fingerprint_follows_the_content(folder, tmp_path):
    source = folder / "json_2.1.1" / "valid_seen"
    target = tmp_path / "json_2.1.1" / "valid_seen"
    shutil.copytree(source, target)
    same = load_games(str(tmp_path), "valid_seen")
    assert same.sha256 == load_games(str(folder), "valid_seen").sha256
    assert same.sha256[:12] in str(same) and "18 tasks, split valid_seen" in str(same)
    file = next(iter(sorted(target.rglob("game.tw-pddl"))))
    file.write_text(file.read_text().replace("agent1", "agent2"))
    assert load_games(str(tmp_path), "valid_seen").sha256 != same.sha256


def small_archive(path, rows, counts):
    header = {"pddl_domain": "d", "grammar_template": "g @GOAL@", "goal_placeholder": "@GOAL@", "counts": counts}
    with lzma.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in [header, *rows])
    return str(path)


def row(index):
    path = f"valid_seen/pick_and_place_simple-Mug-None-Desk-301/trial_{index:03d}"
    return {"path": path, "task": "put a mug in desk.", "walkthrough": [], "pddl_problem": str(index)}


def test_a_nearly_full_release_is_a_visible_warning_with_the_numbers(tmp_path):
    path = small_archive(tmp_path / "a.jsonl.xz", [row(i) for i in range(138)], {"valid_seen": 138})
    with pytest.warns(UserWarning, match="138 valid_seen games, but the release json_2.1.2 has 140"):
        assert len(load_games(path, "valid_seen").tasks) == 138


def test_errors_are_one_line_that_names_the_file(folder, archive, tmp_path):
    def fails(source, split="train", match="", **options):
        with pytest.raises(ValueError, match=match) as caught:
            load_games(str(source), split, **options)
        assert "\n" not in str(caught.value)

    fails(tmp_path / "nowhere", match="no such folder")
    fails(folder, "valid", match="no ALFWorld split 'valid'")
    fails(archive, "valid", match="no split 'valid'")
    fails(archive, task_types=["pick_nothing"], match="pick_nothing")
    fails(archive, count=0, match="count 0")
    fails(archive, "valid_unseen", count=135, match="135 ALFWorld games asked for.*134")
    (tmp_path / "json_2.1.1" / "train").mkdir(parents=True)
    fails(tmp_path, match="holds no ALFWorld game")
    cut = tmp_path / "cut.jsonl.xz"
    cut.write_bytes(Path(archive).read_bytes()[:500_000])
    fails(cut, match="cut.jsonl.xz is no archive")
    fails(__file__, match="test_games.py is no archive")
    short = small_archive(tmp_path / "short.jsonl.xz", [row(0)], {"valid_seen": 2})
    fails(short, "valid_seen", match="1 valid_seen games")
    bare = small_archive(tmp_path / "bare.jsonl.xz", [{"path": "valid_seen/x"}], {"valid_seen": 1})
    fails(bare, "valid_seen", match="bare.jsonl.xz is no archive")
    trial = tmp_path / "json_2.1.1" / "train" / "pick_and_place_simple-Mug-None-Desk-301" / "trial_1"
    trial.mkdir(parents=True)
    game = {"pddl_domain": "", "grammar": "another", "pddl_problem": "", "solvable": True}
    (trial / "game.tw-pddl").write_text(json.dumps(game)[:-1])
    fails(tmp_path, match="game.tw-pddl is no ALFWorld game")
    (trial / "game.tw-pddl").write_text(json.dumps(game))
    fails(tmp_path, match="grammar has 0 lines")


def test_games_that_are_not_marked_solvable_are_left_out(folder, tmp_path):
    shutil.copytree(folder / "json_2.1.1" / "valid_seen", tmp_path / "valid_seen")
    first, second = sorted(tmp_path.rglob("game.tw-pddl"))[:2]
    first.write_text(first.read_text().replace('"solvable": true', '"solvable": false'))
    second.write_text(second.read_text().replace('"solvable": true, ', ""))
    assert len(load_games(str(tmp_path), "valid_seen").tasks) == 16

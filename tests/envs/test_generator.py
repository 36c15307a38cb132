"""Generated games: the same everywhere, solvable, not solved at the start, and like the real ones."""

import os
import statistics
import subprocess
import sys

import pytest

from trca_jax.envs.alfworld import generator
from trca_jax.envs.alfworld.engine import AlfworldEnv
from trca_jax.envs.alfworld.games import TASK_TYPES, load_games
from trca_jax.envs.alfworld.generator import HELD_OUT, SCENES, generate, make_game

# Of 60 train games with seed 0. It may change only together with generator.VERSION.
FINGERPRINT = "7a08611a1b7a93fc7873f4d3cddfa6bb44e1380fd6c0e4c39bf6830bf997a74c"


def scene_of(identity: str) -> int:
    return int(identity.split("/")[1].rsplit("-", 1)[1])


def facts(game) -> set[tuple[str, ...]]:
    lines = game.problem_text().split("(:init")[1].split("(:goal")[0].splitlines()
    return {tuple(line.strip(" ()").split()) for line in lines if line.strip(" ()")}


@pytest.mark.parametrize("split", ["train", "valid_unseen"])
def test_every_type_is_won_by_its_own_plan_and_not_before_its_end(split):
    tasks = load_games("generated", split, count=12).tasks
    assert sorted(t.kind for t in tasks) == sorted(TASK_TYPES * 2)
    env = AlfworldEnv()
    for task in tasks:
        seen = env.reset(task)
        assert not seen.won and seen.text.endswith(f"\n\nYour task is to: {task.instruction}")
        for command in task.payload.walkthrough:
            assert command in seen.admissible and not seen.won, (task.id, command)
            seen = env.step(command)
        assert seen.won, task.id


def test_games_are_the_same_in_every_process_and_version():
    assert load_games("generated", "train", count=60).sha256 == FINGERPRINT
    code = "from trca_jax.envs.alfworld.games import load_games as l; print(l('generated', 'train', count=60).sha256)"
    env = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=env).strip() == FINGERPRINT


def test_seed_split_and_count():
    small, large = generate("train", TASK_TYPES, 12, 1), generate("train", TASK_TYPES, 24, 1)
    assert large[:12] == small and len(dict(large)) == 24
    assert make_game("train", TASK_TYPES[1], 1, 0) == small[1]
    problems = {game.problem for _, game in large}
    assert len(problems) == 24
    assert not problems & {game.problem for _, game in generate("train", TASK_TYPES, 24, 2)}
    assert not problems & {game.problem for _, game in generate("valid_seen", TASK_TYPES, 24, 1)}
    only = generate("train", TASK_TYPES[1:2], 2, 1)
    assert only == [small[1], small[7]]  # the same games, whatever other types are asked for
    with pytest.raises(ValueError, match="valid_train"):
        generate("valid_train", TASK_TYPES, 1, 0)


def test_held_out_scenes_are_never_trained_on():
    assert len(SCENES) == 120 and {10, 219, 308, 424} < HELD_OUT and len(HELD_OUT) == 15
    train, unseen = ({scene_of(i) for i, _ in generate(s, TASK_TYPES, 240, 0)} for s in ("train", "valid_unseen"))
    assert unseen <= HELD_OUT and not train & HELD_OUT
    assert len(train) > 80 and len(unseen) > 10
    assert {scene_of(i) for i, _ in generate("valid_seen", TASK_TYPES, 60, 0)} <= set(SCENES) - HELD_OUT


def test_sentences_are_those_of_the_release():
    games = generate("train", TASK_TYPES, 240, 0)
    said = {kind: set() for kind in TASK_TYPES}
    for identity, game in games:
        kind, obj, _, recep, _ = identity.split("/")[1].split("-")
        forms = [s.format(obj=obj.lower(), recep=recep.lower()) for s in generator._SENTENCES[kind]]
        said[kind].add(forms.index(game.goal))
    assert all(forms == {0, 1} for forms in said.values())
    goals = {game.goal for _, game in games}
    assert any(goal.startswith("put two ") for goal in goals) and any(" under the desklamp." in goal for goal in goals)
    assert all(goal.islower() and goal.endswith(".") for goal in goals)


def test_goal_objects_start_elsewhere_than_the_goal():
    for identity, game in generate("train", TASK_TYPES, 60, 3):
        kind, obj, _, recep, _ = identity.split("/")[1].split("-")
        known = facts(game)
        things = {f[1] for f in known if f[0] == "objectType" and f[2] == f"{obj}Type"}
        targets = {f[1] for f in known if f[0] == "receptacleType" and f[2] == f"{recep}Type"}
        assert len(things) >= (2 if kind.startswith("pick_two") else 1)
        assert not {f for f in known if f[0] == "inReceptacle" and f[1] in things and f[2] in targets}
        assert not any(f[0] in ("isClean", "isHot", "isCool", "isToggled", "opened", "holds") for f in known)


def test_games_look_like_the_real_ones(shared_data):
    """Medians of counts a game by room within a third of the release's, over things that can be met."""

    def counts(game):
        known = facts(game)
        kinds = {f[1]: f[2] for f in known if f[0] == "objectType"}
        boxes = {f[1] for f in known if f[0] == "receptacleType"}
        places = [f[2] for f in known if f[0] == "receptacleAtLocation" and f[1] in boxes]
        held = {f[1] for f in known if f[0] == "inReceptacle"}
        takeable = {f[1] for f in known if f[0] == "pickupable"} & held
        most = max(list(kinds.values()).count(kind) for kind in {kinds[t] for t in takeable})
        shared = sum(places.count(p) > 1 for p in places)
        return len(boxes), len(takeable), sum(f[0] == "openable" for f in known), shared, most

    def medians(games):
        rooms = {}
        for identity, game in games:
            rooms.setdefault(scene_of(identity) // 100, []).append(counts(game))
        return {room: [statistics.median(c) for c in zip(*rows, strict=True)] for room, rows in rooms.items()}

    archive = str(shared_data / "alfworld" / "alfworld_games_json_2.1.2.jsonl.xz")
    real = medians((t.id, t.payload) for t in load_games(archive, "train", count=300).tasks)
    made = medians(generate("train", TASK_TYPES, 300, 0))
    for room in (0, 2, 3, 4):
        for i, slack in enumerate((0, 0, 3, 3)):
            assert abs(made[room][i] - real[room][i]) <= real[room][i] / 3 + slack, (room, i, made[room], real[room])
        assert made[room][4] == real[room][4] == 3  # one to three of a kind


def test_a_missing_package_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(generator, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="package 'alfworld'"):
        generator._package("gen")

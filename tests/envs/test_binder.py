"""Task sentences to bindings."""

import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.envs.alfworld.binder import FIELDS, Goal, binding, read_goal


@pytest.mark.parametrize(
    ("sentence", "goal"),
    [
        ("put a kettle in shelf.", Goal("pick_and_place_simple", "kettle", "shelf")),
        ("put some creditcard on drawer.", Goal("pick_and_place_simple", "creditcard", "drawer")),
        ("examine the mug with the desklamp.", Goal("look_at_obj_in_light", "mug", None, "lit", "desklamp")),
        ("look at cd under the desklamp.", Goal("look_at_obj_in_light", "cd", None, "lit", "desklamp")),
        (
            "put a clean ladle in diningtable.",
            Goal("pick_clean_then_place_in_recep", "ladle", "diningtable", "clean", "sinkbasin"),
        ),
        (
            "clean some ladle and put it in diningtable.",
            Goal("pick_clean_then_place_in_recep", "ladle", "diningtable", "clean", "sinkbasin"),
        ),
        ("put a hot mug in cabinet.", Goal("pick_heat_then_place_in_recep", "mug", "cabinet", "hot", "microwave")),
        (
            "heat some mug and put it in cabinet.",
            Goal("pick_heat_then_place_in_recep", "mug", "cabinet", "hot", "microwave"),
        ),
        (
            "put a cool pan in stoveburner.",
            Goal("pick_cool_then_place_in_recep", "pan", "stoveburner", "cool", "fridge"),
        ),
        (
            "cool some pan and put it in stoveburner.",
            Goal("pick_cool_then_place_in_recep", "pan", "stoveburner", "cool", "fridge"),
        ),
        ("put two cd in drawer.", Goal("pick_two_obj_and_place", "cd", "drawer", copies=2)),
        ("find two cd and put them in drawer.", Goal("pick_two_obj_and_place", "cd", "drawer", copies=2)),
        (
            "Your task is to: put a hot mug in cabinet.\n",
            Goal("pick_heat_then_place_in_recep", "mug", "cabinet", "hot", "microwave"),
        ),
    ],
)
def test_every_template(sentence, goal):
    assert read_goal(sentence) == goal


def test_binding_of_one_and_of_two():
    assert binding(read_goal("put a cool pan in stoveburner.")) == {
        "target": "pan",
        "destination": "stoveburner",
        "state": "cool",
        "tool": "fridge",
        "copies": ("first",),
    }
    assert binding(read_goal("put two cd in drawer."))["copies"] == ("first", "second")
    assert binding(read_goal("put two cd in drawer."))["tool"] is None


@pytest.mark.parametrize(
    "sentence", ["", "put a lukewarm mug in cabinet.", "Put the kettle on the shelf", "put two cd"]
)
def test_what_is_not_understood_is_all_unknown(sentence):
    assert binding(read_goal(sentence)) == {field.name: None for field in FIELDS}


@given(st.text())
def test_no_sentence_raises(sentence):
    binding(read_goal(sentence))


def test_all_real_sentences(shared_data):
    path = shared_data / "alfworld" / "alfworld_games_json_2.1.2.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        games = [json.loads(line) for line in lines]
    assert len(games) == 4027
    for game in games:
        goal, params = read_goal(game["task"]), game["pddl_params"]
        assert goal.kind == game["task_type"]
        assert goal.target == params["object_target"].lower()
        if goal.state == "lit":
            assert goal.tool == params["toggle_target"].lower()
        else:
            assert goal.destination == params["parent_target"].lower()

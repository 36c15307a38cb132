"""What the viewer is given: figures of the credit at their steps, texts once, whole groups, the telling ones first."""

import json

import pytest
from box_episodes import BLUE, NOTHING, RED, ROOM, TIME, episode, open_red, played, wait
from fake_world import World

from trca_jax.evaluation import timeline as module
from trca_jax.evaluation.timeline import Texts, packed, timeline

PLENTY = 10**6
WORLD = World()


@pytest.fixture(scope="module")
def file():
    return played([
        episode(("open 2", BLUE, 0.0, ""), ("open 1", RED, 1.0, "<think>Left</think><action>open 1"), won=True),
        episode(("wait", TIME, -0.5, ""), (None, NOTHING, 0.0, "I rest"), ("open 2", BLUE, 0.0, ""), truncated=True),
        open_red(goal="blue", group=2),
        wait(goal="blue", group=2, failure="worker died"),
    ])  # fmt: skip


def test_every_step_has_its_texts_items_and_figures(file):
    found = timeline([file], WORLD, PLENTY)
    (one,), texts = found["files"], found["texts"]
    assert (one["key"], one["label"], one["credited"], one["left_out"]) == ("rollouts-0", "file rollouts-0", True, 0)
    assert [(g["number"], g["instruction"], g["kind"]) for g in one["groups"]] == [
        (0, "open the red box", "open"),
        (2, "open the blue box", "open"),
    ]
    won, lost = one["groups"][0]["rollouts"]
    assert (won["end"], lost["end"], texts[won["first"]]) == ("won", "cut off", ROOM)
    assert won["episode"] == pytest.approx(file.credit.episode[0], abs=1e-4) and won["episode"] > 0 > lost["episode"]
    told = [[None if place < 0 else texts[place] for place in step[:3]] for step in (*won["steps"], *lost["steps"])]
    assert told == [
        ["open 2", BLUE, None], ["open 1", RED, "Left"],
        ["wait", TIME, None], [None, NOTHING, "I rest"], ["open 2", BLUE, None],
    ]  # fmt: skip
    assert [step[5] for step in won["steps"]] == [[0], [0, 3]] and [step[5] for step in lost["steps"]] == [[], [1], [0]]
    assert [texts[step[4]] for step in won["steps"]] == ["opened none", "opened blue"]
    # The first steps of both, and the lost one's other steps, are in one context: nothing was opened yet.
    contexts = {won["steps"][0][3], *(step[3] for step in lost["steps"])}
    assert len(contexts) == 1 and won["steps"][1][3] not in contexts
    c, step = file.credit, lost["steps"][1]
    expected = (c.foundational, c.breakthrough, file.batch.r_env, c.returns, c.step, c.advantage)
    assert step[6:] == pytest.approx([float(array[1, 1]) for array in expected], abs=1e-4)
    assert step[6] < 0 and step[11] == pytest.approx(step[10] + lost["episode"], abs=2e-4)
    json.dumps(found, allow_nan=False)


def test_a_failed_rollout_has_no_steps_and_says_why(file):
    failed = timeline([file], WORLD, PLENTY)["files"][0]["groups"][1]["rollouts"][1]
    assert (failed["end"], failed["failure"], failed["steps"]) == ("failed", "worker died", [])


def test_without_credit_there_are_no_figures_and_without_fields_no_contexts():
    uncredited = timeline([played([open_red(), wait()], method=None)], WORLD, PLENTY)["files"][0]
    assert uncredited["credited"] is False
    (rollout, _) = uncredited["groups"][0]["rollouts"]
    assert rollout["episode"] is None and len(rollout["steps"][0]) == 6


def test_each_text_stands_once_and_long_ones_are_cut():
    texts = Texts()
    assert [texts.add(x) for x in ("a", None, "b", "a")] == [0, -1, 1, 0]
    long = "x" * (module.LONGEST + 1500)
    assert texts[texts.add(long)] == "x" * module.LONGEST + " … (1,500 more characters)"
    texts.drop(1)
    assert list(texts) == ["a"] and texts.add("b") == 1 and texts.add("a") == 0


def test_groups_are_taken_from_files_and_outcomes_in_turn():
    """Four mixed, four lost and four won groups in one file, one lost group in the other."""
    many = []
    for group in range(12):
        makers = [(open_red, wait), (wait, wait), (open_red, open_red)][group // 4]
        many += [make(group=group) for make in makers]
    files = [played(many), played([wait(group=0)], "evaluation-0")]
    whole = timeline(files, WORLD, PLENTY)
    assert [len(file["groups"]) for file in whole["files"]] == [12, 1]
    cost = len(packed(whole["files"][0]["groups"][0])) + 300  # a little more than any group, and all texts
    small = timeline(files, WORLD, 4 * cost)
    first, other = small["files"]
    assert [g["number"] for g in other["groups"]] == [0] and other["left_out"] == 0
    numbers = [g["number"] for g in first["groups"]]
    assert {0, 4, 8} <= set(numbers) and first["left_out"] == 12 - len(numbers) > 0
    assert all(len(g["rollouts"]) == 2 for g in first["groups"])
    assert len(packed(small["files"][0]["groups"])) <= 4 * cost
    assert timeline(files, WORLD, 10)["texts"] == [] and timeline(files, WORLD, 10)["files"][0]["left_out"] == 12

"""Grouping of similar texts against public code, and by hand."""

import json
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from boxes import task
from fake_world import World

from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.similarity import similar_groups
from trca_jax.rubrics.language import Judge


def test_groups_equal_the_public_code(shared_data):
    cases = json.loads((shared_data / "golden" / "gigpo.json").read_text())["similarity_cases"]
    assert len(cases) == 4
    for case in cases:
        given, groups = case["inputs"], []
        for uid in dict.fromkeys(given["uid"]):
            own = [text for text, u in zip(given["anchor_obs"], given["uid"], strict=True) if u == uid]
            groups += [(uid, group) for group in similar_groups(own, given["threshold"])]
        number = {group: i for i, group in enumerate(dict.fromkeys(groups))}
        expected = {group: i for i, group in enumerate(dict.fromkeys(case["outputs"]["step_group"]))}
        assert [number[g] for g in groups] == [expected[g] for g in case["outputs"]["step_group"]], case["name"]


def test_a_text_joins_the_first_group_that_fits_and_the_order_of_the_pair_matters():
    texts = ["abcdefgh", "abcdefgx", "abcdefxx", "abcdefgh", "zzz"]
    assert similar_groups(texts, 0.8) == [0, 0, 1, 0, 2]  # the third is like the second, but not like the first
    a, b = "tide", "diet"
    assert SequenceMatcher(None, a, b).ratio() == 0.25 < SequenceMatcher(None, b, a).ratio() == 0.5
    assert similar_groups([a, b], 0.4) == [0, 0] and similar_groups([b, a], 0.4) == [0, 1]


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(ValueError, match="similarity threshold"):
        similar_groups(["a"], threshold)


def played(group, *texts):
    steps = [Step([1], [2], [0.0], None, "wait", (0, 1), before, (), after) for before, after in pairwise(texts)]
    return Episode(task("a"), group, "append", texts[0], steps)


def test_similar_observations_share_a_context_inside_a_task_alone():
    world = World()
    episodes = [
        played(0, "you see box 1", "it is red"),
        played(0, "you see box 2", "time"),
        played(1, "you see box 1", "x"),
    ]
    batches = [
        credit_batch(episodes, world, Judge(world.library), max_steps=1, context="observation", similarity=s)
        for s in (0.0, 0.9)
    ]
    exact, similar = (batch.context[:, 0].tolist() for batch in batches)
    assert len(set(exact)) == 3
    assert similar[0] == similar[1] != similar[2]
    for batch in batches:
        batch.check({"context", "next_context"})

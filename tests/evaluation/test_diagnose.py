"""The diagnostic study on hand-made rollouts: three denominators, labels by the rubric, and Cohen's kappa."""

import dataclasses
import math

import numpy as np
import pytest
from boxes import COMMANDS, task
from fake_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.evaluation.diagnose import (
    EVIDENCE,
    EXECUTION,
    LABELS,
    NO_LABEL,
    OTHER,
    SCOPES,
    VALIDITY,
    agreement,
    diagnosis,
    reasons,
    rubric_labels,
)
from trca_jax.evaluation.report import wilson
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.judge import credit_batch
from trca_jax.rubrics.language import Judge

BLANK = np.zeros(0, np.int32)
ROOM, TIME, NOTHING = "you see box 1 box 2 box 3 .", "time goes by .", "nothing happens ."
RED, BLUE = "you open box 1 . it is red .", "you open box 2 . it is blue ."


def episode(name, kind, length, won=False, failure=None):
    steps = [Step(BLANK, BLANK, BLANK, None, "wait", (0, 0), ROOM, COMMANDS, TIME) for _ in range(length)]
    return Episode(dataclasses.replace(task(name), kind=kind), 0, "append", ROOM, steps, won=won, failure=failure)


EPISODES = [
    episode("a", "near", 3, won=True),
    episode("a", "near", 4),
    episode("b", "near", 2),
    episode("b", "near", 2),
    episode("c", "far", 1),
    episode("c", "far", 4, won=True, failure="worker died"),  # counts nowhere, also not as a success of its group
]
E, X, V, N, _ = EVIDENCE, EXECUTION, VALIDITY, OTHER, NO_LABEL
ROWS = np.array([[E, X, V, _], [V, V, N, N], [E, N, _, _], [N, _, _, _], [N, _, _, _], [E, E, E, E]])


def test_three_denominators_by_hand():
    """Episode 3 has two steps of which the second was given no label."""
    far, near, both = diagnosis(ROWS, EPISODES)
    assert [row["kind"] for row in (far, near, both)] == ["far", "near", "all"]
    assert (near["rollouts"], near["failed"], near["failure_rate"]) == (4, 3, 0.75)
    assert (near["failure_low"], near["failure_high"]) == wilson(3, 4)
    assert (near["groups"], near["success_free"], near["success_free_rate"]) == (2, 1, 0.5)
    assert (both["rollouts"], both["failed"]) == (5, 4) and (both["groups"], both["success_free"]) == (3, 2)
    assert both["success_free_low"] == wilson(2, 3)[0]
    of = both["transitions"]
    assert tuple(of) == SCOPES
    counts = {scope: [of[scope][name] for name in ("count", *LABELS, "unlabelled")] for scope in SCOPES}
    assert counts == {
        "all": [12, 2, 1, 3, 5, 1], "failed": [9, 1, 0, 2, 5, 1], "success-free": [5, 1, 0, 0, 3, 1],
    }  # fmt: skip
    assert of["all"]["useful"] == 6 / 11 and of["all"]["rewarded"] == 3 / 11
    assert of["failed"]["useful"] == 3 / 8 and of["failed"]["rewarded"] == 1 / 8
    assert of["success-free"]["useful"] == of["success-free"]["rewarded"] == 1 / 4


def test_without_a_denominator_there_is_no_rate():
    (row,) = diagnosis(np.full((1, 4), NO_LABEL), [EPISODES[-1]])
    assert row["kind"] == "all" and row["rollouts"] == row["groups"] == 0
    assert row["failure_rate"] is None and row["success_free_rate"] is None
    assert row["transitions"]["all"] == dict.fromkeys(("count", *LABELS, "unlabelled"), 0) | {
        "useful": None, "rewarded": None,
    }  # fmt: skip


given_labels = st.lists(st.integers(-1, 3), min_size=1, max_size=4)
played = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans(), given_labels), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(played)
def test_counts_equal_a_loop_and_scopes_lie_in_each_other(rollouts):
    episodes = [
        episode(name, "one" if name < "b" else "two", len(labels), won, "broken" if broken else None)
        for name, won, broken, labels in rollouts
    ]
    array = np.full((len(episodes), 4), NO_LABEL)
    for r, (*_, labels) in enumerate(rollouts):
        array[r, : len(labels)] = labels
    rows = {row["kind"]: row for row in diagnosis(array, episodes)}
    live = [(name, won, labels) for name, won, broken, labels in rollouts if not broken]
    saved = {name for name, won, _ in live if won}
    for kind, names in (("one", "a"), ("two", "bc"), ("all", "abc")):
        here = [one for one in live if one[0] in names]
        if kind != "all" and not here:
            assert kind not in rows
            continue
        row, of = rows[kind], rows[kind]["transitions"]
        assert row["failed"] == sum(not won for _, won, _ in here)
        assert row["success_free"] == len({name for name, *_ in here} - saved)
        for scope, part in zip(
            SCOPES, (here, [o for o in here if not o[1]], [o for o in here if o[0] not in saved]), strict=True
        ):
            told = [label for *_, labels in part for label in labels]
            assert of[scope]["count"] == len(told) and of[scope]["unlabelled"] == told.count(NO_LABEL)
            assert [of[scope][name] for name in LABELS] == [told.count(label) for label in range(4)]
        assert of["success-free"]["count"] <= of["failed"]["count"] <= of["all"]["count"]
    if "one" in rows and "two" in rows:
        for name in ("rollouts", "failed", "groups", "success_free"):
            assert rows["all"][name] == rows["one"][name] + rows["two"][name]


def test_labels_of_the_rubric():
    """Execution before Evidence before Other before Validity; nothing beyond the end or of an episode that broke."""
    moves = [
        [("open 2", BLUE), ("wait", TIME), ("open 1", RED)],
        [(None, NOTHING), ("dance", NOTHING)],
        [("open 1", RED)],
    ]
    episodes = []
    for number, steps in enumerate(moves):
        steps = [Step(BLANK, BLANK, BLANK, None, a, (0, 0), ROOM, COMMANDS, after) for a, after in steps]
        episodes.append(Episode(task(str(number), "red"), number, "append", ROOM, steps))
    episodes[2].failure = "worker died"
    world = World()
    judge = Judge(world.library)
    batch = credit_batch(episodes, world, judge, max_steps=4)
    labels = rubric_labels(batch)
    assert labels.tolist() == [[E, V, X, _], [N, N, _, _], [_, _, _, _]]
    assert reasons(batch, labels, judge.items) == {"unparsed": 1, "refused": 1}


def test_an_output_without_action_is_other_even_if_no_item_says_so():
    batch = credit_batch([episode("a", "k", 2)], World(), Judge(World().library), max_steps=2)
    assert rubric_labels(batch).tolist() == [[V, V]]
    silent = dataclasses.replace(batch, valid=np.array([[True, False]]))
    assert rubric_labels(silent).tolist() == [[V, N]]


def test_kappa_by_hand():
    """Of 10 transitions both say Evidence 4 and Other 3 times: p_o = .7, p_e = .6·.5 + .4·.5 = .5, κ = .4. An eleventh
    and twelfth have one label only."""
    one = np.array([[E] * 4 + [E, E, N] + [N] * 3 + [E, _]])
    two = np.array([[E] * 4 + [N, N, E] + [N] * 3 + [_, X]])
    found = agreement(one, two)
    assert found["transitions"] == 10 and found["observed"] == pytest.approx(0.7)
    assert found["kappa"] == pytest.approx(0.4)
    assert found["counts"] == [[4, 0, 0, 2], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 3]]


def test_kappa_is_undefined_where_chance_explains_everything():
    same = np.full((2, 2), VALIDITY)
    assert agreement(same, same)["kappa"] is None and agreement(same, same)["observed"] == 1
    nothing = agreement(same, np.full((2, 2), NO_LABEL))
    assert nothing["kappa"] is None and nothing["transitions"] == 0


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=40), st.permutations(range(4)))
def test_kappa_is_symmetric_renaming_changes_nothing_and_equality_is_one(pairs, renamed):
    one, two = np.array(pairs).T.reshape(2, 1, -1)
    kappa = agreement(one, two)["kappa"]
    back = agreement(two, one)["kappa"]
    assert (kappa is None and back is None) or math.isclose(kappa, back)
    table = np.array([*renamed, NO_LABEL])  # index -1 stays
    again = agreement(table[one], table[two])["kappa"]
    assert (kappa is None and again is None) or math.isclose(kappa, again)
    assert kappa is None or kappa <= 1 + 1e-12
    itself = agreement(one, one)
    assert itself["kappa"] in (None, pytest.approx(1.0))

"""Every ALFWorld operator on a transition where it holds, one where it does not, and one that cannot be told."""

import dataclasses
import pickle
import random
from collections import Counter

import numpy as np
import pytest
from alfworld_texts import BENCHMARK, bound, fired, first, follow, judge, judgements, task
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.envs.alfworld import Alfworld
from trca_jax.rubrics.schema import CATEGORIES

CLEAN, PUT, LOOK, TWO = (
    "put a clean apple in fridge.",
    "put a cd in drawer.",
    "look at cd under the desklamp.",
    "put two cd in drawer.",
)
TABLE = ("go to table 1", "You arrive at table 1. On the table 1, you see a apple 1, and a mug 1.")
BED = ("go to bed 1", "You arrive at bed 1. On the bed 1, you see nothing.")
DESK = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a cd 2, a cd 1, and a desklamp 1.")
SINK = ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.")
FRIDGE = ("go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed.")
OPEN_FRIDGE = ("open fridge 1", "You open the fridge 1. The fridge 1 is open. In it, you see nothing.")
DRAWER = ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed.")
OPEN_DRAWER = ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see nothing.")
TAKE_APPLE = ("take apple 1 from table 1", "You pick up the apple 1 from the table 1.")
CLEAN_APPLE = ("clean apple 1 with sinkbasin 1", "You clean the apple 1 using the sinkbasin 1.")
TAKE_CD_2 = ("take cd 2 from desk 1", "You pick up the cd 2 from the desk 1.")
TAKE_CD = ("take cd 1 from desk 1", "You pick up the cd 1 from the desk 1.")
LAMP = ("use desklamp 1", "You turn on the desklamp 1.")
PUT_CD = ("move cd 1 to drawer 1", "You move the cd 1 to the drawer 1.")
GARBLED = ("look", "### 502 bad gateway ###")
REFUSED = "Nothing happens."


def garbled(step):
    return (step[0], GARBLED[1])


# operator: (sentence, steps; the last one is judged), where it fires, where it does not, and where it is not known
CASES = {
    "target_seen[0]": ((CLEAN, [TABLE]), (CLEAN, [BED]), (CLEAN, [garbled(TABLE)])),
    "target_seen[1]": ((TWO, [DESK]), (PUT, [DESK]), (TWO, [garbled(DESK)])),
    "destination_inspected": (
        (CLEAN, [FRIDGE, OPEN_FRIDGE]),
        (CLEAN, [FRIDGE]),
        (CLEAN, [FRIDGE, garbled(OPEN_FRIDGE)]),
    ),
    "tool_found": ((CLEAN, [SINK]), (CLEAN, [SINK, BED, SINK]), (CLEAN, [garbled(SINK)])),
    "container_opened": ((PUT, [OPEN_FRIDGE]), (PUT, [DESK, OPEN_FRIDGE]), (PUT, [garbled(OPEN_FRIDGE)])),
    "place_inspected": ((PUT, [BED]), (PUT, [BED, TABLE, BED]), (PUT, [garbled(BED)])),
    "unparsed": ((PUT, [(None, REFUSED)]), (PUT, [("jump", REFUSED)]), (PUT, [GARBLED])),
    "refused": ((PUT, [("jump", REFUSED)]), (PUT, [(None, REFUSED)]), (PUT, [("jump", GARBLED[1])])),
    "idle": ((PUT, [("inventory", "You are not carrying anything.")]), (PUT, [BED]), (PUT, [GARBLED])),
    "repeated": ((PUT, [BED, TABLE, BED, TABLE]), (PUT, [BED, TABLE, BED]), (PUT, [GARBLED])),
    "regressed": (
        (CLEAN, [TABLE, TAKE_APPLE, ("move apple 1 to table 1", "You move the apple 1 to the table 1.")]),
        (CLEAN, [("move mug 1 to table 1", "You move the mug 1 to the table 1.")]),
        # whether this apple is clean was never seen
        (CLEAN, [TABLE, TAKE_APPLE, ("move apple 1 to fridge 1", "You move the apple 1 to the fridge 1.")]),
    ),
    "target_taken[0]": (
        (CLEAN, [TAKE_APPLE]),
        (CLEAN, [("take mug 1 from table 1", "You pick up the mug 1 from the table 1.")]),
        (CLEAN, [garbled(TAKE_APPLE)]),
    ),
    "target_taken[1]": (
        (TWO, [TAKE_CD, PUT_CD, TAKE_CD_2]),
        (TWO, [TAKE_CD, PUT_CD, ("take cd 1 from drawer 1", "You pick up the cd 1 from the drawer 1.")]),
        (TWO, [TAKE_CD, PUT_CD, ("take cd 2 from desk 1", GARBLED[1])]),
    ),
    "target_at_tool": ((CLEAN, [TAKE_APPLE, SINK]), (CLEAN, [SINK]), (CLEAN, [TAKE_APPLE, GARBLED, SINK])),
    "transformed": (
        (CLEAN, [CLEAN_APPLE]),
        (CLEAN, [("clean mug 1 with sinkbasin 1", "You clean the mug 1 using the sinkbasin 1.")]),
        (CLEAN, [garbled(CLEAN_APPLE)]),
    ),
    "target_at_destination[0]": (
        (CLEAN, [TAKE_APPLE, CLEAN_APPLE, FRIDGE]),
        (CLEAN, [CLEAN_APPLE, BED]),
        (CLEAN, [TAKE_APPLE, FRIDGE]),  # it might be clean
    ),
    "target_at_destination[1]": (
        (TWO, [DESK, TAKE_CD, DRAWER, PUT_CD, DESK, TAKE_CD_2, DRAWER]),
        (TWO, [DESK, TAKE_CD, DRAWER, DESK, DRAWER]),
        (TWO, [DESK, TAKE_CD, DRAWER, PUT_CD, DESK, garbled(TAKE_CD_2), DRAWER]),
    ),
    "target_placed[0]": ((PUT, [TAKE_CD, PUT_CD]), (LOOK, [TAKE_CD, PUT_CD]), (PUT, [TAKE_CD, garbled(PUT_CD)])),
    "target_placed[1]": (
        (TWO, [DESK, TAKE_CD, PUT_CD, ("move cd 2 to drawer 1", "You move the cd 2 to the drawer 1.")]),
        (TWO, [DESK, TAKE_CD, PUT_CD, ("move cd 2 to drawer 2", "You move the cd 2 to the drawer 2.")]),
        (TWO, [DESK, TAKE_CD, PUT_CD, ("move cd 2 to drawer 1", GARBLED[1])]),
    ),
}


def test_five_of_each_and_all_have_cases():
    library = BENCHMARK.library
    assert Counter(operator.category for operator in library.operators) == dict.fromkeys(CATEGORIES, 5)
    assert set(judge().items) - set(CASES) == set()
    assert library.benchmark == BENCHMARK.name
    assert all(operator.doc.endswith(".") for operator in library.operators)


@pytest.mark.parametrize("item", CASES)
def test_operator(item):
    holds, fails, unknown = CASES[item]
    assert item in fired(*holds)[-1]
    assert item not in fired(*fails)[-1]
    assert item not in fired(*unknown)[-1]


@pytest.mark.parametrize(
    ("sentence", "found"),
    [(PUT, [DESK]), (TWO, [DESK]), (LOOK, [DESK]), (CLEAN, [TABLE]), (PUT, [DESK, TAKE_CD, PUT_CD])],
)
def test_looking_on_pays_only_until_all_that_is_needed_was_seen(sentence, found):
    search = {"place_inspected", "container_opened"}
    assert "place_inspected" in fired(sentence, found)[0]
    assert not search & set().union(*fired(sentence, [*found, BED, OPEN_FRIDGE])[1:])
    assert not search & set().union(*fired(sentence, [*found, GARBLED, BED, OPEN_FRIDGE])[1:])


def test_looking_on_pays_while_the_second_target_or_the_lamp_is_unseen():
    one = ("go to bed 1", "You arrive at bed 1. On the bed 1, you see a cd 1.")
    for sentence in (TWO, LOOK):
        assert "place_inspected" in fired(sentence, [one, SINK])[1]
    assert "place_inspected" not in fired("make me a sandwich.", [BED])[0]


def test_refused_is_one_item_not_two():
    assert fired(PUT, [("jump", REFUSED)]) == [{"refused"}]
    assert fired(PUT, [(None, REFUSED)]) == [{"unparsed"}]


def test_which_items_a_task_binds():
    always = {"target_seen[0]", "container_opened", "place_inspected", "target_taken[0]"}
    always |= {"unparsed", "refused", "idle", "repeated", "regressed"}
    to_put = {"destination_inspected", "target_at_destination[0]", "target_placed[0]"}
    tool = {"tool_found", "target_at_tool", "transformed"}
    second = {"target_seen[1]", "target_taken[1]", "target_at_destination[1]", "target_placed[1]"}
    assert bound(PUT) == always | to_put
    assert bound(CLEAN) == always | to_put | tool
    assert bound(LOOK) == always | tool
    assert bound(TWO) == always | to_put | second
    assert bound("make me a sandwich.") == always - {"target_seen[0]", "target_taken[0]"}


@pytest.mark.parametrize("order", [(TAKE_CD, LAMP), (LAMP, TAKE_CD)])
def test_a_look_task_covers_its_execution_in_either_order(order):
    got = set().union(*fired(LOOK, [DESK, *order]))
    assert {"target_taken[0]", "target_at_tool", "transformed"} <= got


LOOPS = {
    "walking to and fro": (PUT, [DESK, BED]),
    "opening and closing": (PUT, [OPEN_DRAWER, ("close drawer 1", "You close the drawer 1.")]),
    "taking and putting back": (PUT, [DESK, TAKE_CD, ("move cd 1 to desk 1", "You move the cd 1 to the desk 1.")]),
    "placing and taking out": (
        TWO,
        [TAKE_CD, PUT_CD, ("take cd 1 from drawer 1", "You pick up the cd 1 from the drawer 1.")],
    ),
    "carrying round": (CLEAN, [TAKE_APPLE, CLEAN_APPLE, FRIDGE, BED]),
    "cleaning on": (CLEAN, [TAKE_APPLE, SINK, CLEAN_APPLE]),
    "switching on": (LOOK, [DESK, LAMP]),
    "heating and cooling": (
        "put a cool apple in table.",
        [
            ("cool apple 1 with fridge 1", "You cool the apple 1 using the fridge 1."),
            ("heat apple 1 with microwave 1", "You heat the apple 1 using the microwave 1."),
        ],
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_going_round_in_circles_earns_nothing_after_the_first_time(loop):
    sentence, steps = LOOPS[loop]
    faults = {"unparsed", "refused", "idle", "repeated", "regressed"}
    got = fired(sentence, steps * 4)
    assert set().union(*got[: len(steps)]) - faults
    second = set().union(*got[len(steps) :])
    assert second <= faults
    assert "repeated" in set().union(*got[3 * len(steps) :])


def real_episodes(shared_data, choose, length=30):
    """(sentence, steps, first observation, won) of 24 shared games, played by choose(task, t, admissible, rng)."""
    benchmark = Alfworld(source=str(shared_data / "alfworld"))
    env = benchmark.make_env()
    for game in benchmark.tasks("train", 24):
        observation, rng, steps = env.reset(game), random.Random(game.id), []
        start = observation.text
        while len(steps) < length and not observation.done:
            action = choose(game, len(steps), observation.admissible, rng)
            observation = env.step(action)
            steps.append((action, observation.text))
        yield game, steps, start, observation.won


def judged(game, steps, start):
    adapter = BENCHMARK.adapter(game, start)
    rows = [adapter.transition(action, text, ()) for action, text in steps]
    judgement, known = judgements([rows], [game.instruction])
    return judgement[0, : len(steps)], known[0]


def test_a_winning_walkthrough_covers_the_execution_of_its_task(shared_data):
    """All but what a game that is won early leaves out: one in twenty ends at the transformation."""
    execution = judge().category == CATEGORIES.index("execution")
    covered = []
    for game, steps, start, won in real_episodes(shared_data, lambda game, t, *_: game.payload.walkthrough[t]):
        judgement, known = judged(game, steps, start)
        assert won
        assert not judgement[:, judge().category == CATEGORIES.index("invalidity")].any()
        covered.append(bool(judgement[:, known & execution].any(0).all()))
    assert len(covered) == 24
    assert np.mean(covered) > 0.9


def test_no_real_play_is_paid_twice_for_one_thing(shared_data):
    names = judge().items
    for game, steps, start, _ in real_episodes(shared_data, lambda game, t, admissible, rng: rng.choice(admissible)):
        judgement, _ = judged(game, steps, start)
        count = dict(zip(names, judgement.sum(0), strict=True))
        rooms = BENCHMARK.adapter(game, start).known.receptacles
        assert all(count[name] <= 1 for name in names if name.endswith("]"))
        assert count["place_inspected"] <= len(rooms)
        assert count["container_opened"] <= count["place_inspected"]
        assert count["destination_inspected"] <= sum(
            name.startswith(BENCHMARK.bind(game)["destination"] or "-") for name in rooms
        )


def test_judgements_rest_on_text_alone_and_on_no_later_step(shared_data):
    for game, steps, start, _ in real_episodes(
        shared_data, lambda game, t, admissible, rng: rng.choice(admissible), 12
    ):
        judgement, _ = judged(game, steps, start)
        blind = dataclasses.replace(game, payload=None, kind="", id="")
        np.testing.assert_array_equal(judged(blind, steps, start)[0], judgement)
        cut = len(steps) // 2
        other = [*steps[:cut], GARBLED, ("go to moon 1", REFUSED)]
        np.testing.assert_array_equal(judged(game, other, start)[0][:cut], judgement[:cut])


STORY = [TABLE, TAKE_APPLE, SINK, CLEAN_APPLE, FRIDGE, OPEN_FRIDGE, ("look", REFUSED)]
STORY += [("move apple 1 to fridge 1", "You move the apple 1 to the fridge 1."), FRIDGE, BED, FRIDGE]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_knowing_fewer_facts_never_adds_a_judgement(data):
    _, rows = follow(CLEAN, STORY)
    forgotten = [{name: None if data.draw(st.booleans()) else value for name, value in row.items()} for row in rows]
    (more, less), _ = judgements([rows, forgotten], [CLEAN, CLEAN])
    assert more.any()
    assert not (less & ~more).any()


def test_the_benchmark_travels_to_workers_and_binds_by_the_sentence():
    copy = pickle.loads(pickle.dumps(Alfworld(source="somewhere", seed=3)))
    assert copy == Alfworld(source="somewhere", seed=3)
    assert copy.library.fingerprint == BENCHMARK.library.fingerprint
    assert copy.bind(task(PUT)) == {
        "target": "cd",
        "destination": "drawer",
        "state": None,
        "tool": None,
        "copies": ("first",),
    }
    assert copy.adapter(task(PUT), first(PUT, "bed 1", "drawer 1")).known.receptacles == ("bed 1", "drawer 1")

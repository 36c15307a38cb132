"""Every WebShop operator on a transition where it holds, one where it does not, and one that cannot be told."""

import dataclasses
import pickle
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webshop_worlds import (
    BENCHMARK,
    bound,
    fired,
    follow,
    generated,
    item,
    judge,
    judgements,
    play,
    real,
    small_shop,
    task,
)

from trca_jax.envs.webshop import Webshop
from trca_jax.envs.webshop.engine import State
from trca_jax.envs.webshop.goals import Goal
from trca_jax.envs.webshop.reward import reward
from trca_jax.rubrics.schema import CATEGORIES

GARBLED = "### 502 bad gateway ###"
ASKED = (
    "Find me long sleeve men's dress shirts with machine wash with color: navy, and size: large, and price lower than "
    "50.00 dollars"
)
PLAIN = "Find me soft rugs for living room"
HUMAN = "i want a navy dress shirt, and price lower than 50.00 dollars"
SEARCH, MORE = "search[dress shirts]", "search[long sleeve dress shirts]"
SHIRT, HAT, DEAR, RUG = (f"click[b00000000{number}]" for number in (1, 2, 3, 4))
BACK, NAVY, RED, LARGE, BUY = "click[< prev]", "click[navy]", "click[red]", "click[large]", "click[buy now]"


def shop():
    options = {"Color": [{"value": "red"}, {"value": "navy"}], "Size": [{"value": "small"}, {"value": "large"}]}
    return small_shop(
        item("B000000001", name="Oxford Dress Shirt", small_description=["Machine wash cold"], pricing="$39.99",
             customization_options=options),
        item("B000000002", name="Straw Hat", full_description="worn with a dress", small_description=["Hand wash"]),
        item("B000000003", name="Silk Dress Shirt", pricing="$80.00"),
        item("B000000004", name="Braided Rug", full_description="dress up your living room", small_description=[]),
    )  # fmt: skip


def items(text, actions, garble=False):
    """The items that fire at the last action; `garble` hides what it brought."""
    world = shop()
    goal = Goal(text, world.products[0], ("machine wash",), {}, 50.0)
    first, steps, _ = play(world, goal, actions)
    if garble:
        steps[-1] = (steps[-1][0], GARBLED, steps[-1][2])
    return fired(text, first, steps)[-1]


# operator: (instruction, actions; the last one is judged), where it fires, where it does not, and where it is not known
CASES = {
    "kind_listed": ((ASKED, [SEARCH]), (ASKED, ["search[straw]"]), (ASKED, [SEARCH], True)),
    "kind_opened": ((ASKED, [SEARCH, SHIRT]), (ASKED, [SEARCH, HAT]), (ASKED, [SEARCH, SHIRT], True)),
    "price_confirmed": ((ASKED, [SEARCH, SHIRT]), (ASKED, [SEARCH, DEAR]), (ASKED, [SEARCH, SHIRT], True)),
    "option_offered": ((ASKED, [SEARCH, SHIRT]), (ASKED, [SEARCH, HAT]), (HUMAN, [SEARCH, SHIRT])),
    "attribute_found": (
        (ASKED, [SEARCH, SHIRT, "click[features]"]),
        (ASKED, [SEARCH, HAT, "click[features]"]),
        (ASKED, [SEARCH, SHIRT, "click[features]"], True),
    ),
    "unparsed": (None, (ASKED, ["jump"]), None),
    "refused": ((ASKED, [SEARCH, "click[b000000009]"]), (ASKED, [SEARCH]), (ASKED, [SEARCH, SHIRT], True)),
    "fruitless": ((ASKED, [SEARCH, SHIRT, NAVY, NAVY]), (ASKED, [SEARCH, SHIRT, NAVY]), (ASKED, ["search[zzz]"], True)),
    "repeated": ((ASKED, [SEARCH, SHIRT, BACK, SHIRT]), (ASKED, [SEARCH, SHIRT]), (ASKED, [SEARCH, SEARCH], True)),
    "regressed": ((ASKED, [SEARCH, SHIRT, RED]), (ASKED, [SEARCH, SHIRT, NAVY]), (HUMAN, [SEARCH, SHIRT, RED])),
    "query_formed": ((ASKED, [MORE]), (ASKED, [SEARCH]), (ASKED, [MORE], True)),
    "candidate_opened": ((ASKED, [SEARCH, SHIRT]), (ASKED, [SEARCH, DEAR]), (ASKED, [SEARCH, SHIRT], True)),
    "option_chosen[0]": ((ASKED, [SEARCH, SHIRT, NAVY]), (ASKED, [SEARCH, SHIRT, RED]), (HUMAN, [SEARCH, SHIRT, NAVY])),
    "option_chosen[1]": (
        (ASKED, [SEARCH, SHIRT, LARGE]),
        (ASKED, [SEARCH, SHIRT, "click[small]"]),
        (ASKED, [SEARCH, SHIRT, LARGE], True),
    ),
    "options_complete": (
        (ASKED, [SEARCH, SHIRT, NAVY, LARGE]),
        (ASKED, [SEARCH, SHIRT, NAVY]),
        (HUMAN, [SEARCH, SHIRT, NAVY, LARGE]),
    ),
    "fitting_bought": (
        (ASKED, [SEARCH, SHIRT, LARGE, NAVY, BUY]),
        (ASKED, [SEARCH, SHIRT, LARGE, BUY]),
        (HUMAN, [SEARCH, SHIRT, LARGE, NAVY, BUY]),
    ),
}


def test_five_of_each_and_all_have_cases():
    library = BENCHMARK.library
    assert Counter(operator.category for operator in library.operators) == dict.fromkeys(CATEGORIES, 5)
    assert {name.partition("[")[0] for name in CASES} == {operator.name for operator in library.operators}
    assert {name for name in judge().items if not name.endswith(("[2]", "[3]", "[4]", "[5]"))} == set(CASES)
    assert library.benchmark == BENCHMARK.name
    assert all(operator.doc.endswith(".") for operator in library.operators)


def test_looking_at_products_pays_until_one_fits():
    looking = {"kind_opened", "query_formed", "kind_listed"}
    assert "kind_opened" in items(ASKED, [SEARCH, HAT, BACK, DEAR])
    assert not looking & items(ASKED, [SEARCH, SHIRT, BACK, DEAR])
    assert not looking & items(ASKED, [SEARCH, SHIRT, MORE])
    assert not looking & items(HUMAN, [SEARCH, SHIRT, BACK, DEAR])  # whether the shirt fits is not known
    assert "attribute_found" in items(ASKED, [SEARCH, SHIRT, "click[features]"])


@pytest.mark.parametrize("name", CASES)
def test_operator(name):
    holds, fails, unknown = CASES[name]
    if holds:
        assert name in items(*holds)
    assert name not in items(*fails)
    if unknown:
        assert name not in items(*unknown)


def test_an_output_without_an_action():
    assert fired(ASKED, "'Search'", [(None, "'Search'", ())]) == [{"unparsed"}]
    assert fired(ASKED, "'Search'", [("jump", "'Search'", ())]) == [{"refused"}]
    assert fired(ASKED, "'Search'", [(None, GARBLED, ())]) == [{"unparsed"}]


def test_more_ways_to_go_wrong():
    assert "fruitless" in items(ASKED, [SEARCH, *["click[next >]"] * 2])
    assert items(ASKED, [SEARCH, SEARCH]) == {"fruitless", "repeated"}
    assert items(ASKED, [SEARCH, SHIRT, NAVY, BACK]) == {"regressed"}
    assert items(ASKED, [SEARCH, SHIRT, NAVY, "search[other shirts]"]) >= {"regressed"}
    assert items(ASKED, [SEARCH, SHIRT, BUY]) == {"regressed"}
    assert items(ASKED, [SEARCH, HAT, BUY]) == {"regressed"}
    assert items(ASKED, ["click[search]"]) == {"refused"}


def test_which_items_a_task_binds():
    always = {"kind_listed", "kind_opened", "attribute_found", "query_formed", "candidate_opened", "fitting_bought"}
    always |= {"unparsed", "refused", "fruitless", "repeated", "regressed"}
    options = {"option_offered", "option_chosen[0]", "option_chosen[1]", "options_complete"}
    assert bound(ASKED) == always | options | {"price_confirmed"}
    assert bound(PLAIN) == always
    assert bound(HUMAN) == always | {"price_confirmed"}


LOOPS = {
    "searching": [SEARCH, "search[shirts dress]"],
    "opening": [SEARCH, SHIRT, BACK],
    "reading": [SEARCH, SHIRT, "click[features]", BACK, "click[description]", BACK, BACK],
    "choosing": [SEARCH, SHIRT, NAVY, RED, LARGE, BACK],
    "completing": [SEARCH, SHIRT, NAVY, LARGE, "click[back to search]"],
    "paging": [SEARCH, "click[next >]", BACK],
}


@pytest.mark.parametrize("loop", LOOPS)
def test_going_round_in_circles_earns_nothing_after_the_first_time(loop):
    world, actions = shop(), LOOPS[loop]
    goal = Goal(ASKED, world.products[0], ("machine wash",), {}, 50.0)
    first, steps, _ = play(world, goal, actions * 4)
    got = fired(ASKED, first, steps)
    faults = {"unparsed", "refused", "fruitless", "repeated", "regressed"}
    assert set().union(*got[: len(actions)]) - faults
    assert set().union(*got[len(actions) :]) <= faults
    assert "repeated" in set().union(*got[len(actions) :])


def test_the_purchase_that_the_paper_tells_of():
    """A men's dress shirt, navy, x-large, cotton heather, under $50, bought at $39.99 for a score of 1."""
    world, listed = generated()
    text = (
        "Find me machine wash men's dress shirts with cotton heather with color: navy, and size: x-large, and price "
        "lower than 50.00 dollars"
    )
    product = next(product for product in world.products if product.asin == "B0HEATHER1")
    goal = Goal(text, product, product.instruction_attributes, {"color": "navy", "size": "x-large"}, 50.0)
    story = {
        "search[men's dress shirts cotton heather]": {"kind_listed", "query_formed"},
        "click[b0heather1]": {
            "kind_opened",
            "price_confirmed",
            "option_offered",
            "attribute_found",
            "candidate_opened",
        },
        "click[features]": {"attribute_found"},
        "click[< prev]": set(),
        "click[navy]": {"option_chosen[0]"},
        "click[x-large]": {"option_chosen[1]", "options_complete"},
        "click[buy now]": {"fitting_bought"},
    }
    first, steps, states = play(world, goal, story)
    assert product.asin in {product.asin for product in world.shown(states[1])}
    assert fired(text, first, steps) == list(story.values())
    outcome = states[-1].outcome
    assert (listed.prices[product.asin], outcome.total, outcome.success) == (39.99, 1.0, True)
    assert reward(product, goal, 39.99, {"color": "navy", "size": "large"}).total == 1.0  # WebShop's leniency
    _, known = judgements([[]], [text])
    covered = set().union(*story.values())
    assert {judge().items[j] for j in np.flatnonzero(known[0])} - covered == {
        "unparsed", "refused", "fruitless", "repeated", "regressed"
    }  # fmt: skip


def wandering(world, goal, rng, length=20):
    state, actions = State(), []
    for _ in range(length):
        menu = list(world.menu(state)) or ["x"]
        query = rng.choice((goal.product.query, goal.text, "soft"))
        actions.append(f"search[{query}]" if state.page == "search" else f"click[{rng.choice(menu)}]")
        state = world.step(state, goal, actions[-1])
    return actions


def test_judgements_rest_on_text_alone_and_on_no_later_step(shared_data):
    rng = random.Random(1)
    for world, listed in (real(shared_data), generated()):
        for goal in rng.sample(listed.goals, 8):
            actions = wandering(world, goal, rng)
            first, steps, _ = play(world, goal, actions)
            other = dataclasses.replace(
                goal, product=rng.choice(world.products), attributes=("nothing",), options={}, price_upper=1.0
            )
            _, hidden, _ = play(world, other, actions, seed=5)
            got = fired(goal.text, first, steps)
            assert fired(goal.text, first, hidden) == got
            cut = len(steps) // 2
            later = [*steps[:cut], ("jump", GARBLED, ()), *steps[cut + 1 :]]
            assert fired(goal.text, first, later)[:cut] == got[:cut]


def test_no_real_play_is_paid_twice_for_one_thing(shared_data):
    rng = random.Random(2)
    world, listed = real(shared_data)
    for goal in rng.sample(listed.goals, 12):
        first, steps, states = play(world, goal, wandering(world, goal, rng, 30))
        count = Counter(name for step in fired(goal.text, first, steps) for name in step)
        opened = {state.product.asin for state in states if state.product}
        for name in ("kind_opened", "candidate_opened", "price_confirmed", "option_offered", "options_complete"):
            assert count[name] <= len(opened)
        assert count["fitting_bought"] <= 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_knowing_fewer_facts_never_adds_a_judgement(data):
    world = shop()
    goal = Goal(ASKED, world.products[0], ("machine wash",), {}, 50.0)
    actions = [MORE, DEAR, BACK, SHIRT, "click[features]", BACK, RED, NAVY, NAVY, LARGE, "jump", SEARCH, SHIRT, BUY]
    first, steps, _ = play(world, goal, actions)
    _, rows = follow(ASKED, first, steps)
    forgotten = [{name: None if data.draw(st.booleans()) else value for name, value in row.items()} for row in rows]
    (more, less), _ = judgements([rows, forgotten], [ASKED, ASKED])
    assert more.any()
    assert not (less & ~more).any()


def test_the_benchmark_travels_to_workers_and_binds_by_the_sentence():
    copy = pickle.loads(pickle.dumps(Webshop(source="somewhere", seed=3, queries="offered")))
    assert copy == Webshop(source="somewhere", seed=3, queries="offered")
    assert copy.library.fingerprint == BENCHMARK.library.fingerprint
    assert copy.bind(task(ASKED))["required_options"] == ("color: navy", "size: large")
    assert copy.adapter(task(ASKED), "'Search'").known.page.kind == "search"

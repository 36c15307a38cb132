"""What the adapter reads and tracks: equal to the hidden session on every recorded step, and no more than is shown."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webshop_worlds import T, follow, generated, golden, item, observation, play, real, small_shop, task

from trca_jax.envs.webshop import Webshop, binder
from trca_jax.envs.webshop.binder import binding, read_wish
from trca_jax.envs.webshop.engine import State
from trca_jax.envs.webshop.facts import FACTS
from trca_jax.envs.webshop.goals import Goal
from trca_jax.envs.webshop.pages import Page, Row, groups, read_page

GARBLED = "### 502 bad gateway ###"


def sessions(shared_data):
    """(name, goal index, actions, hidden asin and options after each) of all records."""
    for walk in golden(shared_data, "random_walks")["walks"]:
        yield walk["goal_index"], [(step["action"], step) for step in walk["steps"]]
    for episode in golden(shared_data, "transcripts")["episodes"]:
        yield episode["goal_index"], [(step["action"], step["hidden_session"]) for step in episode["steps"]]


def test_the_tracker_agrees_with_the_hidden_session_on_every_recorded_step(shared_data):
    shop, listed = real(shared_data)
    steps_seen = 0
    for index, records in sessions(shared_data):
        goal = listed.goals[index]
        first, steps, states = play(shop, goal, [action for action, _ in records])
        adapter = Webshop().adapter(task(goal.text), first)
        for step, (_, hidden), before, state in zip(steps, records, states, states[1:], strict=False):
            facts = adapter.transition(*step)
            known = adapter.known
            assert (known.product.asin if known.product else None) == hidden["asin"]
            assert known.options == hidden["options"]
            assert known.page.kind == state.page
            assert known.number == hidden["page"]
            assert facts["accepted"] is (state is not before)
            assert set(facts) == {fact.name for fact in FACTS}
            steps_seen += 1
            if state.page == "item":
                assert known.product.title == state.product.title.strip()
                assert known.page.low == min(state.product.price_range)
    assert steps_seen == 4280 + 191


def test_every_item_page_is_read(shared_data):
    for shop, listed in (real(shared_data), generated()):
        for product in shop.products:
            state = State("item", ("x",), (), 1, product)
            page = read_page(observation(shop, state, listed.goals[0]))
            assert page.low == min(product.price_range)
            found = groups(page.parts, product.title.strip(), frozenset(shop.menu(state)))
            expected = {value: name for name, values in product.options.items() for value in values}
            assert found == expected


def test_every_results_row_is_read():
    shop, listed = generated()
    for prefix in ("<q> face creams", "<c> beauty", "<q> decorative pillows"):
        state = play(shop, listed.goals[0], [f"search[{prefix}]"])[2][-1]
        while shop.shown(state):
            page = read_page(observation(shop, state, listed.goals[0]))
            expected = [Row(p.asin, p.title, min(p.price_range)) for p in shop.shown(state)]
            assert page == Page("results", state.number, len(state.found), tuple(expected))
            state = shop.step(state, listed.goals[0], "click[next >]")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "'",
        "''",
        GARBLED,
        "Search",
        "'Back to Search'",
        "'Back to Search' [SEP] 'Page 2 (Total results: 3)' [SEP] 'Next >'",
    ],
)
def test_other_texts_are_no_page(text):
    assert read_page(text) is None


def test_of_the_last_page_nothing_but_its_being_last_is_read():
    assert read_page("Thank you for shopping with us! [SEP] Your score (min 0.0, max 1.0) [SEP] 1.0") == Page("done")


def test_bindings_of_all_real_goals(shared_data):
    """Options, price bound, and every attribute as a literal phrase."""
    _, listed = real(shared_data)
    width = {field.name: field.width for field in binder.FIELDS}
    for goal in listed.goals:
        wish = read_wish(goal.text)
        assert dict(wish.options) == dict(goal.options)
        assert wish.price_bound == (None if goal.price_upper == 1_000_000 else goal.price_upper)
        assert {attribute.lower() for attribute in goal.attributes} <= set(wish.attributes)
        assert len(wish.attributes) <= width["attributes"] and len(wish.options) <= width["required_options"]


def test_bindings_of_all_generated_goals():
    for goal in generated()[1].goals:
        bound = binding(read_wish(goal.text))
        assert bound["required_options"] == tuple(f"{name}: {value}" for name, value in goal.options.items())
        assert bound["option_total"] == (len(goal.options) or None)
        assert set(goal.attributes) <= set(bound["attributes"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Find me slim fit men's dress shirts with long sleeve with color: navy, and size: x-large, and price lower "
            "than 50.00 dollars",
            {
                "required_options": ("color: navy", "size: x-large"),
                "option_total": 2,
                "attributes": ("slim fit", "slim fit men's", "long sleeve"),
                "kind": "shirts",
                "price_bound": 50.0,
            },
        ),
        (
            "Find me easy clean sofas & couches for living room",
            {
                "required_options": (),
                "option_total": None,
                "attributes": ("easy clean", "easy clean sofas", "living room"),
                "kind": "couches",
                "price_bound": None,
            },
        ),
        (
            "i am looking for a blue shirt, and price lower than 60.00 dollars",
            {"required_options": None, "option_total": None, "price_bound": 60.0, "kind": "looking"},
        ),
        ("", {"required_options": None, "option_total": None, "attributes": None, "kind": None, "price_bound": None}),
    ],
)
def test_bindings(text, expected):
    bound = binding(read_wish(text))
    assert expected.items() <= bound.items()


@given(st.one_of(st.text(), st.text().map("Find me {}".format), st.from_regex(r"Find me .* with .*: .*, and .*: .*")))
def test_any_text_binds(text):
    assert set(binding(read_wish(text))) == {field.name for field in binder.FIELDS}


GOAL_TEXT = (
    "Find me soft shirts with machine wash with color: navy, and size: large, and price lower than 50.00 dollars"
)


def shirts():
    options = {"Color": [{"value": "red"}, {"value": "navy"}], "Size": [{"value": "small"}, {"value": "large"}]}
    return small_shop(
        item(customization_options=options, small_description=["Machine wash cold"], pricing="$39.99"),
        item("B000000002", name="Soft Shirt Deluxe", pricing="$60.00", customization_options=options),
        item("B000000003", name="Hat for a shirt", full_description="", pricing="$9.00 - $70.00"),
    )


def facts_of(actions, text=GOAL_TEXT, garble=()):
    """The facts of a session in the small shop; observations at the places `garble` cannot be read."""
    shop = shirts()
    goal = Goal(text, shop.products[0], ("machine wash",), {"color": "navy", "size": "large"}, 50.0)
    first, steps, _ = play(shop, goal, actions)
    steps = [(a, GARBLED if t in garble else seen, offered) for t, (a, seen, offered) in enumerate(steps)]
    adapter, rows = follow(text, first, steps)
    return adapter, rows


BUY = ["search[soft shirt]", "click[b000000001]", "click[navy]", "click[large]", "click[buy now]"]


def test_a_purchase_step_by_step():
    _, (search, opened, navy, large, buy) = facts_of(BUY)
    assert search["searched"] and search["query_fits"] and search["query_attributes"] == () and search["listed"] == 3
    assert opened["opened"] and opened["title_fits"] and opened["price"] == 39.99 and opened["within_price"]
    assert opened["offered"] == ("color: navy", "size: large") and opened["revealed"] == ()
    assert navy["chosen"] == ("color: navy",) and navy["complete"] == 0 and not navy["options_met"]
    assert large["chosen"] == ("size: large",) and large["complete"] == 2 and large["options_met"]
    assert buy["bought"] and buy["regressed"] is False and buy["options_met"] and buy["within_price"]
    assert all(row["accepted"] and row["changed"] and not row["repeated"] for row in (search, opened, navy, large, buy))


def test_what_pages_reveal_is_told_once_a_product():
    look = ["click[features]", "click[< prev]"]
    other = ["click[< prev]", "click[b000000002]", *look]
    _, rows = facts_of(["search[soft shirt]", "click[b000000001]", *look, *look, *other])
    revealed = [row["revealed"] for row in rows]
    assert revealed[2] == ("machine wash",) and revealed[4] == () and revealed[8] == ("machine wash",)


def test_repetitions_and_dead_ends():
    _, rows = facts_of(
        ["search[shirt soft]", "search[Soft shirts]", "click[b000000003]", "click[< prev]", "click[b000000003]",
         "click[back to search]", "click[search]", "search[zzz]", "click[next >]", "jump", "click[large]"]
    )  # fmt: skip
    repeated = [row["repeated"] for row in rows]
    assert repeated == [False, True, False, False, True, False, False, False, False, False, False]
    assert [row["changed"] for row in rows][:2] == [True, False]
    assert [row["empty"] for row in rows][7:9] == [True, True]
    assert [row["accepted"] for row in rows] == [True] * 6 + [False, True, True, False, False]


def test_regressions():
    _, rows = facts_of(
        ["search[soft shirt]", "click[b000000001]", "click[red]", "click[navy]", "click[small]", "click[< prev]",
         "click[b000000002]", "click[< prev]", "click[b000000001]", "click[buy now]"]
    )  # fmt: skip
    assert [row["regressed"] for row in rows] == [False, False, True, False, True, True, False, False, False, True]


@pytest.mark.parametrize(("asin", "regressed"), [("b000000002", True), ("b000000001", False)])
def test_a_purchase_above_the_bound_is_a_regression(asin, regressed):
    _, rows = facts_of(["search[soft shirt]", f"click[{asin}]", "click[navy]", "click[large]", "click[buy now]"])
    assert rows[-1]["regressed"] is regressed and rows[-1]["within_price"] is not regressed


def test_what_cannot_be_read_is_unknown_until_the_next_search():
    adapter, rows = facts_of([*BUY[:3], "click[description]", "click[< prev]", "click[large]"], garble=(2,))
    assert rows[2] == dict.fromkeys(rows[2]) | {"parsed": True}
    assert adapter.known.product is None and adapter.known.options is None
    assert rows[5]["chosen"] is None and rows[5]["options_met"] is None and rows[5]["regressed"] is None
    adapter, rows = facts_of([*BUY[:3], *BUY[:3]], garble=(2,))
    assert adapter.known.options == {"color": "navy"}
    # whether it was chosen before was never seen; it counts as the first time
    assert rows[5]["chosen"] == ("color: navy",) and rows[3]["repeated"] and rows[4]["repeated"]


def test_a_page_of_another_kind_than_the_action_leads_to_is_unknown():
    shop = shirts()
    goal = Goal(GOAL_TEXT, shop.products[0], ("machine wash",), {}, 50.0)
    first, steps, _ = play(shop, goal, BUY[:2])
    adapter, rows = follow(GOAL_TEXT, first, [steps[0], (steps[1][0], steps[0][1], steps[1][2])])
    assert rows[1]["accepted"] is None and rows[1]["opened"] is None
    assert adapter.known.product is None


def test_a_missing_action_is_not_parsed_and_not_accepted():
    shop = shirts()
    goal = Goal(GOAL_TEXT, shop.products[0], ("machine wash",), {}, 50.0)
    first, _, _ = play(shop, goal, [])
    _, (row,) = follow(GOAL_TEXT, first, [(None, first, ())])
    assert (row["parsed"], row["accepted"], row["changed"]) == (False, False, False)


def test_a_text_that_may_ask_for_options_in_its_own_words_leaves_them_unknown():
    _, rows = facts_of(BUY, text="i want a soft navy shirt, and price lower than 50.00 dollars")
    assert rows[1]["offered"] is None and rows[2]["chosen"] is None and rows[4]["options_met"] is None
    assert rows[4]["bought"] and rows[4]["regressed"] is None


def test_values_that_read_like_buttons_are_tracked_as_the_shop_takes_them():
    options = {"Size": [{"value": value} for value in ("next >", "features", "< prev", "large")]}
    shop = small_shop(item(customization_options=options))
    goal = Goal("Find me soft shirts with size: next >", shop.products[0], ("soft",), {"size": "next >"}, 50.0)
    for target in ("next >", "features", "< prev", "large", "search"):
        first, steps, states = play(shop, goal, ["search[shirt]", "click[b000000001]", f"click[{target}]"])
        adapter, rows = follow(goal.text, first, steps)
        assert adapter.known.options == dict(states[-1].options)
        assert adapter.known.page.kind == states[-1].page
        assert rows[-1]["accepted"] is (states[-1] is not states[-2])


def test_contexts_part_what_pages_merge():
    adapter = lambda *actions: facts_of(["search[soft shirt]", "click[b000000001]", *actions])[0].context()  # noqa: E731
    assert adapter("click[navy]") != adapter("click[red]") != adapter()
    assert adapter("click[navy]", "click[large]") == adapter("click[large]", "click[navy]")
    assert adapter("click[description]") != adapter("click[features]")
    assert adapter("click[< prev]", "click[b000000001]") == adapter()
    assert adapter("search[shirts soft]") == adapter("search[soft shirt]") != adapter("search[shirt]")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=15), st.none()), max_size=6), st.lists(st.text(max_size=60), max_size=6))
def test_no_text_raises(actions, texts):
    adapter = Webshop().adapter(task(GOAL_TEXT), texts[0] if texts else "")
    for action, text in zip(actions, texts, strict=False):
        facts = adapter.transition(action, text, ("click[x]", "search[<your query>]"))
        assert set(facts) == {fact.name for fact in FACTS}


def test_facts_rest_on_text_alone(shared_data):
    """A goal with another product, attributes, options and bound behind the same text gives the same facts."""
    shop, listed = real(shared_data)
    rng = random.Random(0)
    for goal in rng.sample(listed.goals, 15):
        other = replace(goal, product=rng.choice(shop.products), attributes=("else",), options={}, price_upper=1.0)
        state, actions = State(), []
        for _ in range(T - 1):
            menu = [target for target in shop.menu(state) if target != "buy now"]
            actions.append(f"search[{goal.product.query}]" if state.page == "search" else f"click[{rng.choice(menu)}]")
            state = shop.step(state, goal, actions[-1])
        if state.page == "item":
            actions.append("click[buy now]")
        rows = [follow(goal.text, *play(shop, some, actions)[:2])[1] for some in (goal, other)]
        assert rows[0] == rows[1]

"""Recorded sessions of the real environment, state by state, and any text whatever as an action."""

import hashlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webshop_worlds import generated, golden, item, play, real, reward_of, small_shop

from trca_jax.envs.webshop import render, verl_agent
from trca_jax.envs.webshop.actions import parse_action
from trca_jax.envs.webshop.engine import State
from trca_jax.envs.webshop.goals import Goal

PAGES = {
    "search": "search",
    "results": "search_results",
    "item": "item_page",
    "sub-page": "item_sub_page",
    "done": "done",
}


def sha1(text):
    return hashlib.sha1(text.encode()).hexdigest()


def hidden(state):
    """The fields that the records keep of a session."""
    return {
        "asin": state.product.asin if state.product else None,
        "options": dict(state.options),
        "page": state.number,
        "keywords": list(state.keywords) if state.keywords else None,
    }


def test_recorded_transcripts(shared_data):
    shop, listed = real(shared_data)
    episodes = golden(shared_data, "transcripts")["episodes"]
    assert sum(len(episode["steps"]) for episode in episodes) == 191
    for episode in episodes:
        goal, state = listed.goals[episode["goal_index"]], State()
        assert {k: v for k, v in episode["goal"].items() if k != "weight"}.items() <= goal.record().items()
        for record in (episode["start"], *episode["steps"]):
            before, where = state, (episode["name"], record.get("action"))
            if "action" in record:
                state = shop.step(state, goal, record["action"])
                assert PAGES[state.page] == record["page"], where
                assert reward_of(before, state) == record["reward"], where
                assert (state.page == "done" and before.page != "done") is record["done"], where
            assert render.text(shop, state, goal.text) == record["observation"], where
            assert render.text_rich(shop, state, goal.text) == record["observation_text_rich"], where
            offered = {"has_search_bar": state.page == "search", "clickables": list(shop.menu(state))}
            assert offered == record["available_actions"], where
            assert hidden(state) == record["hidden_session"], where


def test_recorded_random_walks(shared_data):
    shop, listed = real(shared_data)
    walks = golden(shared_data, "random_walks")["walks"]
    assert len(walks) == 300
    for walk in walks:
        goal, state = listed.goals[walk["goal_index"]], State()
        assert sha1(render.text(shop, state, goal.text)) == walk["start_sha1"]
        for record in walk["steps"]:
            before, state = state, shop.step(state, goal, record["action"])
            offered = {"has_search_bar": state.page == "search", "clickables": list(shop.menu(state))}
            assert sha1(render.text(shop, state, goal.text)) == record["obs_sha1"], record
            assert sha1(json.dumps(offered, sort_keys=True)) == record["avail_sha1"], record
            assert reward_of(before, state) == record["reward"], record
            assert (state.page == "done" and before.page != "done") is record["done"]
            known = hidden(state)
            assert {key: known[key] for key in ("asin", "options", "page")} == {
                key: record[key] for key in ("asin", "options", "page")
            }


def test_verl_agents_observations_and_actions(shared_data):
    cases = golden(shared_data, "verl_format")["formatting"]
    assert len(cases) == 70
    for case in cases:
        page = "search" if case["available_actions"]["has_search_bar"] else "other"
        assert verl_agent.observation(case["observation"], case["task"]) == case["formatted"]
        assert list(verl_agent.actions(page, case["available_actions"]["clickables"])) == case["admissible"]


def test_verl_agents_reading_of_answers(shared_data):
    cases = golden(shared_data, "verl_format")["projection"]
    assert len(cases) == 16
    for case in cases:
        assert verl_agent.project(case["response"]) == (case["action"], bool(case["valid"])), case


@pytest.mark.parametrize(
    ("action", "parsed"),
    [
        ("click[a[b]]", ("click[a", "b]")),
        ("click[x] y]", ("click", "x] y")),
        ("search[\n]", ("", "")),
        ("search[a\nb]", ("", "")),
        ("x\nsearch[a]", ("", "")),
        ("search[a] b", ("search", "a")),
        ("search[ A ]", ("search", " a ")),
        (" search[a]", (" search", "a")),
        ("[a]", ("", "")),
        ("", ("", "")),
    ],
)
def test_grammar(action, parsed):
    assert parse_action(action) == parsed


def world():
    shop, listed = generated()
    return shop, listed.goals[0]


def test_hidden_search_prefixes():
    shop, goal = world()
    found = lambda *actions: play(shop, goal, actions)[2][-1].found  # noqa: E731
    kinds = lambda numbers: {shop.products[number].category for number in numbers}  # noqa: E731
    assert kinds(found("search[<c> beauty]")) == {"beauty"} and len(found("search[<c> beauty]")) > 50
    assert {shop.products[n].query for n in found("search[<q> face creams]")} == {"face creams"}
    assert found("search[<c>]") == found("search[<a> soft]") == found("search[<q>]") == ()
    drawn = [play(shop, goal, ["search[<r>]"] * n)[2][-1].found for n in (1, 2)]
    assert [len(set(numbers)) for numbers in drawn] == [50, 50] and drawn[0] != drawn[1]
    assert drawn[0] == found("search[<r>]")


def test_all_pages_of_a_long_list():
    shop, goal = world()
    state = play(shop, goal, ["search[<c> beauty]"])[2][-1]
    count, pages = len(state.found), []
    while len(pages) < 30:
        pages.append([product.asin for product in shop.shown(state)])
        state = shop.step(state, goal, "click[next >]")
    assert [asin for page in pages for asin in page] == [shop.products[number].asin for number in state.found]
    assert pages[(count - 1) // 10] and not pages[(count - 1) // 10 + 1]
    assert state.number == 31


def odd(**options):
    values = {name: [{"value": value} for value in own] for name, own in options.items()}
    return small_shop(item(customization_options=values))


def open_item(shop, *actions):
    goal = Goal("Find me soft shirts", shop.products[0], ("soft",), {}, 50.0)
    return play(shop, goal, ["search[shirt]", "click[b000000001]", *actions])[2][-1]


def test_values_that_read_like_buttons_are_those_buttons():
    shop = odd(Size=("features", "Buy Now", "search", "< prev", "large"))
    assert open_item(shop, "click[features]").sub_page == "features"
    assert open_item(shop, "click[buy now]").page == "done"
    assert open_item(shop, "click[< prev]").page == "results"
    assert open_item(shop, "click[search]").options == {}
    assert open_item(shop, "click[large]").options == {"size": "large"}
    assert list(shop.menu(open_item(shop))) == [
        "back to search", "< prev", "description", "features", "reviews", "buy now", "search", "large"
    ]  # fmt: skip


def test_a_value_of_two_options_is_the_later_ones():
    shop = odd(Color=("small", "red"), Size=("small", "large"))
    assert open_item(shop, "click[small]").options == {"size": "small"}


@pytest.mark.parametrize("value", ["it's", '28" x 28"', "a<b>&c", "naïve", "a\\b", "中文", "tab\tinside"])
def test_values_with_any_letters_can_be_chosen_and_bought(value):
    shop = odd(Size=(value, "other"))
    state = open_item(shop, f"click[{value}]", "click[buy now]")
    assert state.page == "done" and dict(state.options) == {"size": value}
    page = render.text(shop, state, "Find me soft shirts")
    shown = page.split(" [SEP] ")[8]
    assert json.loads(shown) == {"size": value}
    assert shown.isascii() and not set("<>&'") & set(shown)


def test_rich_pages_mark_what_stands_in_quotes_in_the_address():
    shop = odd(Size=("small", "naïve"))
    rich = lambda *actions: render.text_rich(shop, open_item(shop, *actions), "x")  # noqa: E731
    assert "[clicked button] small [clicked button_]" in rich("click[small]")
    assert "clicked" not in rich("click[naïve]")
    opened = render.text_rich(shop, open_item(shop, "click[< prev]"), "x")
    assert "\n\n[clicked button] B000000001 [clicked button_]\n" in opened
    assert "clicked" not in render.text_rich(shop, open_item(shop, "click[back to search]", "search[shirt]"), "x")


def test_a_product_with_nothing_to_show():
    shop = small_shop(item(name="", full_description="", small_description=[]), item("B2"))
    goal = Goal("x", shop.products[0], ("soft",), {}, 50.0)
    texts = [
        render.text(shop, state, "x")
        for state in play(shop, goal, ["search[<c> fashion]", "click[b000000001]", "click[features]"])[2]
    ]
    head = "Instruction: [SEP] x [SEP] Back to Search [SEP] "
    assert texts[1] == (
        f"{head}Page 1 (Total results: 2) [SEP] Next > [SEP] B000000001 [SEP] $10.0 [SEP] B2 [SEP] Soft Shirt "
        "[SEP] $10.0"
    )
    assert texts[2].startswith(f"{head}< Prev [SEP] Price: $10.0")
    assert texts[3] == f"{head}< Prev"


@pytest.mark.parametrize(
    ("bullets", "text"),
    [
        (["", "a"], " [SEP]  [SEP] a"),
        ([" a\nb "], " [SEP] a\nb"),
        (["<b>x</b> &amp;"], " [SEP] <b>x</b> &amp;"),
        ([], ""),
    ],
)
def test_bullets(bullets, text):
    shop = small_shop(item(small_description=bullets))
    goal = Goal("x", shop.products[0], ("soft",), {}, 50.0)
    state = play(shop, goal, ["search[shirt]", "click[b000000001]", "click[features]"])[2][-1]
    assert render.text(shop, state, "x") == f"Instruction: [SEP] x [SEP] Back to Search [SEP] < Prev{text}"


ACTIONS = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.builds("search[{}]".format, st.text(max_size=20)),
        st.builds("click[{}]".format, st.text(max_size=10)),
        st.sampled_from(
            (
                "search[dress shirts]|search[<r>]|search[<c> ]|click[next >]|click[< prev]|click[0]|click[description]|"
                "click[features]|click[reviews]|click[back to search]|click[buy now]"
            ).split("|")
        ),
        st.integers(0, 30),
    ),
    max_size=20,
)


@settings(max_examples=80, deadline=None)
@given(ACTIONS)
def test_any_text_is_an_action(actions):
    shop, goal = world()
    state = State()
    for action in actions:
        menu = list(shop.menu(state))
        if isinstance(action, int):
            action = f"click[{menu[action % len(menu)]}]" if menu else "click[0]"
        before, state = state, shop.step(state, goal, action)
        verb, target = parse_action(action)
        live = (verb == "search" and target) or (verb == "click" and target in menu and target != "search")
        assert (state is not before) == bool(live)
        assert 0 <= reward_of(before, state) <= 1
        for page in (render.text(shop, state, goal.text), render.text_rich(shop, state, goal.text)):
            assert page
        assert (state.page == "done") == (not shop.menu(state))


def test_ten_thousand_words_are_a_search():
    shop, goal = world()
    words = " ".join(f"word{n} shirt" for n in range(5000))
    start = time.perf_counter()
    (state,) = play(shop, goal, [f"search[{words}]"])[2][1:]
    assert len(state.found) == 50
    assert time.perf_counter() - start < 5


def test_a_step_takes_less_than_a_millisecond(shared_data):
    shop, listed = real(shared_data)
    walks = golden(shared_data, "random_walks")["walks"][:60]
    best = min(_seconds_a_step(shop, listed, walks) for _ in range(3))
    assert best < 1e-3


def _seconds_a_step(shop, listed, walks):
    start = time.thread_time()
    for walk in walks:
        play(shop, listed.goals[walk["goal_index"]], [step["action"] for step in walk["steps"]])
    return (time.thread_time() - start) / sum(len(walk["steps"]) for walk in walks)

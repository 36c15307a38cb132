"""Anything as an action, anything in a file: defined behaviour, or one line that says what is wrong."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from webshop_worlds import BENCHMARK, T, follow, generated, item, judgements, observation, play, real, small_shop, task

from trca_jax.envs.bm25 import Index
from trca_jax.envs.webshop import render
from trca_jax.envs.webshop.actions import parse_action
from trca_jax.envs.webshop.binder import binding, read_wish
from trca_jax.envs.webshop.brief import brief
from trca_jax.envs.webshop.catalog import make_products
from trca_jax.envs.webshop.data import load_products
from trca_jax.envs.webshop.engine import Shop, State
from trca_jax.envs.webshop.goals import KINDS, Goal, make_goals
from trca_jax.envs.webshop.nouns import with_nouns
from trca_jax.envs.webshop.reward import check_goal

ANY_CHARACTER = st.characters(min_codepoint=0, max_codepoint=0x10FFFF, exclude_categories=())  # half surrogates too
ANY_TEXT = st.text(ANY_CHARACTER, max_size=12)
BIG = 250_000
BUTTONS = ("back to search", "< prev", "description", "features", "reviews", "buy now")


@given(st.text("a[] \nB", max_size=12))
def test_an_action_is_read_as_the_greedy_pattern_reads_it(action):
    match = re.match(r"(.+)\[(.+)\]", action)
    assert parse_action(action) == ((match[1], match[2].lower()) if match else ("", ""))


# Each made very long: what a pattern that tries again from every character would never come to an end with.
LONG = {
    "one word": "a", "joiners": "_", "joiners and letters": "_a", "opening": "[", "closing": "]", "quotes": "'",
    "dotted": "a.", "words": "shirt red ", "NUL": "\0", "surrogates": "\ud800", "accents": "\u0301",
    "accented": "a\u0301", "emoji": "😀\u200d", "flags": "🇩", "ideographs": "中", "katakana": "ア_", "Hebrew": 'א"',
    "options": ", and color: red with ", "lists": ", and ", "prices": " price lower than 1",
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_a_very_long_text_is_a_search_a_click_and_an_instruction(name):
    body = (LONG[name] * (BIG // len(LONG[name]) + 1))[:BIG]
    shop, listed = generated()
    first, steps, states = play(shop, listed.goals[0], [f"search[{body}]", f"click[{body}]", f"search[{body}"])
    understood = name != "opening"  # there the last bracket opens, and what stands before it is no verb
    assert [state.page for state in states[1:]] == ["results" if understood else "search"] * 3
    assert (len(states[1].found) > 0) == (name in ("words", "options", "prices"))
    _, rows = follow(listed.goals[0].text, first, steps)
    assert [row["accepted"] for row in rows] == [understood, False, name == "closing"]
    assert set(binding(read_wish(f"Find me {body}"))) == {field.name for field in BENCHMARK.library.fields}
    assert isinstance(brief(body), str)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(ANY_TEXT, st.builds("search[{}]".format, ANY_TEXT), st.builds("click[{}]".format, ANY_TEXT)),
                max_size=8))  # fmt: skip
def test_any_characters_are_an_action_and_can_be_judged(actions):
    shop, listed = generated()
    goal = listed.goals[1]
    first, steps, states = play(shop, goal, actions)
    for action, before, after in zip(actions, states, states[1:], strict=False):
        verb, argument = parse_action(action)
        known = verb == "search" or (verb == "click" and argument in shop.menu(before) and argument != "search")
        assert (after is not before) is bool(known)
    _, rows = follow(goal.text, first, steps)
    assert [row["accepted"] for row in rows] == [b is not a for a, b in pairwise(states)]
    judged, _ = judgements([rows], [goal.text])
    assert judged.shape[1] == T and not judged[0, len(rows) :].any()


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY_TEXT.filter(str.strip), min_size=1, max_size=4))
def test_option_values_of_any_characters(values):
    """Each can be chosen exactly if an action can name it, and then stands in the purchase."""
    shop = small_shop(item(customization_options={"Size": [{"value": value} for value in values]}))
    goal = Goal("Find me soft shirts", shop.products[0], ("soft",), {}, 50.0)
    opened = play(shop, goal, ["search[shirt]", "click[b000000001]"])[2][-1]
    for value in shop.products[0].options["size"]:
        chosen = shop.step(opened, goal, f"click[{value}]")
        if parse_action(f"click[{value}]") == ("click", value) and shop.menu(opened)[value] == "size":
            done = shop.step(chosen, goal, "click[buy now]") if chosen.page == "item" else None
            if done is None:
                assert value in ("back to search", "< prev", "description", "features", "reviews", "buy now")
                continue
            expected = {} if value == "search" else {"size": value}
            assert dict(done.options) == expected
            shown = observation(shop, done, goal).split(" [SEP] ")
            assert json.dumps(expected, sort_keys=True).translate(render._HTML_SAFE) in " [SEP] ".join(shown)


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.sampled_from(["$5", "$", "$1e5", "9" * 400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
GOOD = {"attributes": ["soft"], "instruction": "Find me soft shirts", "instruction_attributes": ["soft"]}
NOTE = {"instruction": "a soft shirt.", "instruction_attributes": ["soft"], "instruction_options": ["red"]}


@st.composite
def spoilt(draw, whole):
    """A copy of an object with some values replaced or left out, or something else in its place."""
    if draw(st.integers(0, 9)) == 0:
        return draw(ANY_JSON)
    made = dict(whole)
    for key in draw(st.lists(st.sampled_from(sorted(whole)), max_size=2)):
        if draw(st.booleans()):
            made.pop(key, None)
        else:
            made[key] = draw(ANY_JSON)
    return made


OPTIONS = {"Color": [{"value": "red"}, {"value": 'a "b" é'}], "Size": [{"value": "l"}]}


@pytest.mark.filterwarnings("ignore:.*titles have no list of nouns")
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoilt(item(customization_options=OPTIONS)), spoilt(GOOD), st.lists(spoilt(NOTE), max_size=2) | ANY_JSON,
       st.lists(ANY_TEXT, max_size=3) | ANY_JSON)  # fmt: skip
def test_any_product_is_refused_by_name_or_can_be_sold(row, own, notes, nouns):
    asin = row.get("asin") if isinstance(row, dict) and isinstance(row.get("asin"), str) else "none"
    try:
        products = make_products([row, item("B2")], {asin: own}, {asin: notes}, {asin: nouns, "B2": ["shirt"]}, "FILE")
    except ValueError as error:
        assert str(error).startswith("FILE: product ") and "\n" not in str(error).replace(str(asin), "")
        return
    products = with_nouns(products)
    shop = Shop(products, Index.build([p.document() for p in products], [p.asin for p in products]))
    goals = []
    for kind in KINDS:
        try:
            goals += make_goals(products, kind=kind).goals
        except ValueError as error:
            assert f"gives no {kind} goal" in str(error) or f"product {asin}" in str(error)
    goals = goals or [Goal("Find me soft shirts", products[0], ("soft",), {}, 50.0)]
    for product in products:
        opened = State("item", ("<r>",), tuple(range(len(products))), 1, product)
        for action in [
            "search[<r>]",
            "click[description]",
            "click[features]",
            *(f"click[{v}]" for v in shop.menu(opened)),
        ]:
            state = shop.step(opened, goals[0], action)
            if state.page == "item":
                assert 0 <= shop.step(state, goals[0], "click[buy now]").outcome.total <= 1
            assert render.text(shop, state, goals[0].text) and render.text_rich(shop, state, goals[0].text)
            BENCHMARK.adapter(task(goals[0].text), observation(shop, opened, goals[0])).transition(
                action, observation(shop, state, goals[0]), [f"click[{target}]" for target in shop.menu(opened)]
            )


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"customization_options": ["x"]}, r"customization_options is \['x'\], expected an object"),
        ({"customization_options": {"Size": "large"}}, "option 'Size' is 'large', expected a list"),
        ({"customization_options": {"Size": ["large"]}}, "option 'Size' is 'large', expected an object"),
        ({"pricing": "$" + "9" * 400}, "is no price"),
        ({"name": "x", "query": ["y" * 500]}, r"query is \['y{1,80}, expected a text"),
    ],
)
def test_what_is_wrong_with_a_product_is_told_in_words(row, said):
    with pytest.raises(ValueError, match=f"product B000000001 .number 0. cannot be read: .*{said}"):
        make_products([item() | row], {})


@pytest.mark.parametrize(
    ("own", "notes", "nouns", "said"),
    [
        ([], (), None, r"attributes entry is \[\], expected an object"),
        ({"attributes": None}, (), None, "attributes is None, expected a list"),
        ({"instruction": 5}, (), None, "instruction is 5, expected a text"),
        ({}, {"instruction": "x"}, None, "list of annotations is .*, expected a list"),
        ({}, ["x"], None, "annotation is 'x', expected an object"),
        ({}, [{"instruction": "x"}], None, "no 'instruction_attributes'"),
        ({}, (), "shirt", "nouns is 'shirt', expected a list"),
    ],
)
def test_what_is_wrong_beside_a_product_is_told_in_words(own, notes, nouns, said):
    beside = [{"B000000001": value} for value in (own, notes, nouns)]
    with pytest.raises(ValueError, match=f"product B000000001 .number 0. cannot be read: .*{said}"):
        make_products([item()], *beside)


FILES = ("items_shuffle.json", "items_ins_v2.json", "items_human_ins.json", "title_nouns.json")
CUT = {"empty": b"", "cut": b'{"B000000001": {"attri', "a page": b"<html>404</html>", "deep": b"[" * 100_000,
       "no text": b"\xff\xfe\x00\xd8", "another kind": b"7"}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", CUT)
def test_each_file_cut_short_or_wrong_is_named(tmp_path, name, kind):
    for file, content in zip(FILES, ([item()], {}, {}, {"B000000001": ["shirt"]}), strict=True):
        (tmp_path / file).write_text(json.dumps(content))
    (tmp_path / name).write_bytes(CUT[kind])
    with pytest.raises(ValueError, match=rf"{name}.*(fetch it again|expected a (list|dict))"):
        load_products(str(tmp_path))


@pytest.mark.parametrize("nouns", [["shirt"], "shirt", 5])
def test_noun_lists_of_another_form_name_their_file(tmp_path, nouns):
    for file, content in zip(FILES, ([item()], {}, {}, {"nouns": nouns}), strict=True):
        (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"title_nouns\.json: its nouns are a .*, expected an object"):
        load_products(str(tmp_path))


@pytest.mark.parametrize("source", ["~nobody_of_that_name/data", "", "a\0b", "x" * 5000])
def test_a_source_that_is_no_path_is_told(source):
    with pytest.raises((ValueError, OSError)):
        load_products(source)


def test_a_catalogue_without_a_single_word_is_told(tmp_path):
    silent = item(name="...", full_description="", small_description=[])
    for file, content in zip(FILES, ([silent], {}, {}, {"B000000001": []}), strict=True):
        (tmp_path / file).write_text(json.dumps(content))
    from trca_jax.envs.webshop.data import load_shop

    with pytest.raises(ValueError, match=f"{tmp_path.name}.*no text holds a word"):
        load_shop(str(tmp_path))


@pytest.mark.parametrize("bound", [0, -5.0, float("nan")])
def test_a_bound_that_is_no_price_names_the_goal(bound):
    goal = replace(generated()[1].goals[0], price_upper=bound)
    with pytest.raises(ValueError, match="price bound is") as error:
        check_goal(goal)
    assert goal.text in str(error.value) and goal.product.asin in str(error.value)


def test_options_that_cannot_be_read_are_unknown():
    assert read_wish("Find me a with b, and c: d").options is None
    assert read_wish("Find me a with b, and c: d").base == "a with b, and c: d"
    assert read_wish("Find me a with c: d, and b").options == {"c": "d, and b"}


def test_a_session_of_the_real_catalogue_stands_any_action(shared_data):
    shop, listed = real(shared_data)
    actions = ["search[\ud800 shirt]", "search[<r> \udfff]", "click[\0]", f"search[{'wo man ' * 5000}]", "\ud83d[x]"]
    states = play(shop, listed.goals[0], actions)[2]
    assert [len(state.found) for state in states] == [0, 50, 50, 50, 7, 7]

"""Rewards equal to the recorded ones, part by part."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webshop_worlds import generated, golden, item, real

from trca_jax.envs.webshop.catalog import make_products
from trca_jax.envs.webshop.goals import Goal
from trca_jax.envs.webshop.reward import COLOR_WORDS, breakdown, color_word, ratio, reward


def product_of(case, by_asin):
    """The bought product of a recorded case."""
    if case.get("purchased_asin"):
        return replace(by_asin[case["purchased_asin"]], nouns=tuple(case["purchased_nouns"]))
    made = case["product"]
    row = item(
        made["asin"], name=made["Title"], query=made["query"], product_category=made["product_category"],
        full_description=made["Description"], small_description=made["BulletPoints"], category=made["category"],
    )  # fmt: skip
    own = {made["asin"]: {"attributes": made["Attributes"]}}
    return make_products([row], own, nouns={made["asin"]: case["purchased_nouns"]})[0]


def goal_of(record, nouns):
    row = item("GOAL", name=record["name"], query=record["query"], product_category=record["product_category"])
    product = make_products([row], {}, nouns={"GOAL": nouns})[0]
    options = record["goal_options"]
    options = options if isinstance(options, dict) else tuple(options)
    return Goal(record["instruction_text"], product, tuple(record["attributes"]), options, record["price_upper"])


def test_recorded_cases(shared_data):
    by_asin = {product.asin: product for product in real(shared_data)[0].products}
    cases = golden(shared_data, "rewards")["curated"]
    assert len(cases) == 50
    for case in cases:
        goal = goal_of(case["goal"], case["goal_nouns"])
        got = reward(product_of(case, by_asin), goal, case["price"], case["options"])
        assert got.total == case["reward"], case["note"]
        assert breakdown(got, goal) == case["breakdown"], case["note"]
        assert got.success is case["success"]


def test_recorded_random_purchases(shared_data):
    shop, listed = real(shared_data)
    by_asin = {product.asin: product for product in shop.products}
    cases = golden(shared_data, "rewards")["random"]
    assert len(cases) == 300
    for case in cases:
        goal = listed.goals[case["goal_index"]]
        assert goal.product.asin == case["goal_asin"]
        got = reward(by_asin[case["purchased_asin"]], goal, case["price"], case["options"])
        assert got.total == case["reward"]
        assert breakdown(got, goal) == case["breakdown"]


def test_goals_that_the_real_code_cannot_reward_are_named(shared_data):
    assert [case["raises"] for case in golden(shared_data, "rewards")["errors"]] == ["TypeError", "ZeroDivisionError"]
    goal = generated()[1].goals[0]
    with pytest.raises(ValueError, match=f"{goal.product.asin}.*price bound is 0"):
        reward(goal.product, replace(goal, price_upper=0), 1.0, {})
    with pytest.raises(ValueError, match=f"{goal.product.asin}.*asks for no attribute"):
        reward(goal.product, replace(goal, attributes=()), 1.0, {})
    with pytest.raises(ValueError, match=r"option_match 'best'.*original, fixed"):
        reward(goal.product, goal, 1.0, {}, option_match="best")
    with pytest.raises(ValueError, match=r"no list of the nouns.*title_nouns\.json"):
        reward(replace(goal.product, nouns=None), goal, 1.0, {})


def test_the_colour_words_are_the_recorded_ones(shared_data):
    recorded = json.loads((shared_data / "webshop" / "color_words.json").read_bytes())["words"]
    assert list(COLOR_WORDS) == recorded


@pytest.mark.parametrize(
    ("value", "word"),
    [("standard", "tan"), ("navy blue", "blue"), ("light pink", "light"), ("a01#black", "black"), ("42w", "42w")],
)
def test_colour_words(value, word):
    assert color_word(value) == word


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Café", "caf", 100),  # letters of Latin-1's upper half go
        ("抹茶", "抹茶", 100),  # others stay
        ("", "", 0),
        ("!!!", "???", 0),
        ("x-large", "xx-large", 93),
        ("large", "('size', 'x-large')", 100),
        ("machine wash", "machine washable", 86),
        ("red", "blue", 29),
    ],
)
def test_ratio(first, second, expected):
    assert ratio(first, second) == expected


def shirts(options, wanted, option_match="original"):
    row = item(customization_options={name: [{"value": v} for v in values] for name, values in options.items()})
    product = make_products([row], {"B000000001": {"attributes": ["soft"]}}, nouns={"B000000001": ["shirt"]})[0]
    goal = Goal("x", product, ("soft",), wanted, 50.0)
    chosen = {name: wanted[name] for name in options} if isinstance(wanted, dict) else {}
    return reward(product, goal, 10.0, chosen, option_match=option_match).total


@pytest.mark.parametrize(
    "value", ["rectangular", "r.brown2070", "army\xa0green", "café", "crème brûlée", 'it"s', "navy", "½"]
)
def test_fixed_matches_every_value_with_itself(value):
    assert shirts({"shape": (value,)}, {"shape": value}, "fixed") == 1.0


@pytest.mark.parametrize(
    ("value", "total"), [("rectangular", 2 / 3), ("b17-army\xa0green", 2 / 3), ("navy", 1.0), ("large", 1.0)]
)
def test_original_keeps_the_flaw_of_pairs(value, total):
    assert shirts({"shape": (value,)}, {"shape": value}) == pytest.approx(total)


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_values_have_a_ratio(first, second):
    assert 0 <= ratio(first, second) == ratio(second, first) <= 100

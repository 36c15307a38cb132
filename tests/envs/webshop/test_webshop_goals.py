"""Goals equal to the real ones by sha1, in every order; splits; and what no purchase can reach."""

import hashlib
from dataclasses import replace

import pytest
from webshop_worlds import generated, golden, item, real

from trca_jax.envs.webshop.catalog import make_products
from trca_jax.envs.webshop.ceiling import best_total, unreachable
from trca_jax.envs.webshop.goals import make_goals
from trca_jax.envs.webshop.reward import reward
from trca_jax.envs.webshop.tasks import load_tasks


def matches(listed, record):
    texts = "\n".join(goal.text for goal in listed.goals)
    assert len(listed) == record["count"] == 6910
    assert hashlib.sha1(texts.encode()).hexdigest() == record["sha1_of_instruction_texts_joined_by_newline"]
    assert listed.sha1 == record["sha1_of_all"]
    for place, sample in record["samples"].items():
        assert listed.goals[int(place)].record() == sample
    drawn = record.get("drawn_prices", {})
    assert {asin: listed.prices[asin] for asin in drawn} == drawn


def test_recorded_goals(shared_data):
    record = golden(shared_data, "goals")
    matches(real(shared_data)[1], record["princeton"]["princeton_seed0"])


@pytest.mark.parametrize("seed", [0, 1, 2, 42, 1000, 1001])
def test_recorded_goals_in_verl_agents_order(shared_data, seed):
    shop, _ = real(shared_data)
    matches(
        make_goals(shop.products, compat="verl-agent", seed=seed), golden(shared_data, "goals")["verl_agent"][str(seed)]
    )


def test_the_seed_moves_prices_and_bounds_but_not_the_order(shared_data):
    shop, listed = real(shared_data)
    other = make_goals(shop.products, seed=1)
    assert [goal.product.asin for goal in other.goals] == [goal.product.asin for goal in listed.goals]
    assert other.prices != listed.prices
    assert other.sha1 != listed.sha1


def test_human_goals_of_the_small_set(shared_data):
    shop, _ = real(shared_data)
    listed = make_goals(shop.products, kind="human")
    assert len(listed) == 13
    texts = {goal.product.asin: goal.text for goal in listed.goals}
    assert texts["B09PY89B1S"].startswith(
        "show me an one organic hair growth serum roller set for all hair types, and price"
    )
    assert {goal.options for goal in listed.goals} >= {("heather charcoal", "small"), ()}
    assert {repr(goal.weight) for goal in listed.goals} == {"1"}  # WebShop's integer, which the sha1 tells from 1.0


def test_which_real_goals_cannot_be_reached(shared_data):
    _, listed = real(shared_data)
    priced = [(goal, listed.prices[goal.product.asin]) for goal in listed.goals]
    record = golden(shared_data, "goals")["unreachable_goal_indices_princeton_seed0"]
    assert len(record) == 458
    assert unreachable(priced) == record
    assert unreachable([priced[i] for i in record[:100]], "fixed") == []


def test_the_best_total_is_that_of_some_purchase():
    _, listed = generated()
    for goal in listed.goals[:200]:
        price = listed.prices[goal.product.asin]
        best = best_total(goal, price)
        assert best >= reward(goal.product, goal, price, dict(goal.options)).total
        assert best_total(goal, price, "fixed") == 1.0


def small_goals(**changes):
    own = {"attributes": ["soft"], "instruction": "Find me soft shirts", "instruction_attributes": ["soft"]}
    return make_goals(make_products([item(**changes)], {"B000000001": own}, nouns={"B000000001": ["shirt"]}))


def test_one_goal_a_combination_with_sorted_names():
    options = {"Size": [{"value": "S"}, {"value": "L"}], "Color": [{"value": "red"}, {"value": "blue"}]}
    listed = small_goals(customization_options=options)
    texts = {goal.text.partition(", and price")[0] for goal in listed.goals}
    assert texts == {
        f"Find me soft shirts with color: {color}, and size: {size}" for color in ("red", "blue") for size in ("s", "l")
    }
    assert all(goal.weight == 0.25 for goal in listed.goals)
    assert small_goals().goals[0].options == {}


@pytest.mark.parametrize(
    ("price", "bounds"), [("$5", (20, 30, 40)), ("$10", (30, 40, 50)), ("$960", (980, 990)), ("$970", (990,))]
)
def test_bounds_are_the_larger_of_two_of_the_next_four_tens(price, bounds):
    found = {
        make_goals(
            make_products([item(pricing=price)], {"B000000001": {"instruction": "x", "instruction_attributes": ["y"]}}),
            seed=seed,
        ).goals[0].price_upper
        for seed in range(60)
    }  # fmt: skip
    assert found == set(map(float, bounds))


@pytest.mark.parametrize("price", ["$980", "$989.99", "$990", "$5,000"])
def test_from_980_dollars_on_there_is_no_bound(price):
    goal = small_goals(pricing=price).goals[0]
    assert goal.price_upper == 1_000_000
    assert goal.text == "Find me soft shirts"


def test_an_option_without_values_leaves_no_goal():
    with pytest.raises(ValueError, match="gives no synthetic goal"):
        small_goals(customization_options={"Size": []})


def test_an_instruction_without_attributes_names_its_product():
    own = {"attributes": ["soft"], "instruction": "Find me soft shirts", "instruction_attributes": []}
    with pytest.raises(
        ValueError, match=r"product B000000001: its instruction 'Find me soft shirts' names no attributes"
    ):
        make_goals(make_products([item()], {"B000000001": own}))


def test_unknown_names():
    for settings in ({"kind": "robot"}, {"compat": "gym"}):
        with pytest.raises(ValueError, match="synthetic, human and one of webshop, verl-agent"):
            make_goals(make_products([item()], {}), **settings)


SOURCES = ("generated", "real")


def source_of(name, shared_data):
    return name if name == "generated" else str(shared_data / "webshop")


@pytest.mark.parametrize("name", SOURCES)
def test_splits_are_those_of_the_paper_and_apart(name, shared_data):
    source = source_of(name, shared_data)
    listed = real(shared_data)[1] if name == "real" else generated()[1]
    sets = {split: load_tasks(source, split) for split in ("train", "dev", "test")}
    numbers = {split: [int(task.id.rsplit("/")[-1]) for task in tasks] for split, tasks in sets.items()}
    assert {s: (min(n), max(n), len(n)) for s, n in numbers.items()} == {
        "test": (0, 499, 500),
        "dev": (500, 1499, 1000),
        "train": (1500, len(listed) - 1, len(listed) - 1500),
    }
    for tasks in sets.values():
        assert [task.id for task in tasks] == sorted({task.id for task in tasks})
        assert listed.sha1 in str(tasks) and "compat webshop, split by clean, seed 0" in str(tasks)
        out_of_reach = {"generated": {"train": 77, "dev": 41, "test": 25}, "real": {"test": 20}}[name].get(tasks.split)
        assert out_of_reach is None or f"{out_of_reach} of these tasks out of reach" in str(tasks)
        for task in tasks.tasks[::97]:
            assert task.instruction == listed.goals[int(task.id[-5:])].text == task.payload.goal.text


@pytest.mark.parametrize("name", SOURCES)
def test_a_split_by_product_shares_none(name, shared_data):
    sets = {s: load_tasks(source_of(name, shared_data), s, split_by="product") for s in ("train", "dev", "test")}
    products = {split: {task.payload.goal.product.asin for task in tasks} for split, tasks in sets.items()}
    assert not products["train"] & products["test"] and not products["train"] & products["dev"]
    assert not products["dev"] & products["test"]
    assert 450 <= len(sets["test"]) <= 500 and 900 <= len(sets["dev"]) <= 1000


def test_most_test_goals_of_verl_agent_are_training_goals_too(shared_data):
    train, test = (load_tasks(str(shared_data / "webshop"), s, compat="verl-agent") for s in ("train", "test"))
    assert (len(train), len(test)) == (6410, 500)
    key = lambda task: (task.payload.goal.product.asin, tuple(sorted(task.payload.goal.options.items())))  # noqa: E731
    shared = {key(task) for task in train}
    assert 440 < sum(key(task) in shared for task in test) < 490
    assert test.tasks[0].payload.seed == 1000


def test_a_draw_is_even_over_the_categories_and_fixed():
    drawn = load_tasks("generated", "train", count=12)
    kinds = [task.kind for task in drawn]
    assert sorted(map(kinds.count, set(kinds))) == [2, 2, 2, 3, 3]
    assert load_tasks("generated", "train", count=12).sha256 == drawn.sha256
    assert load_tasks("generated", "train", count=12, seed=1).sha256 != drawn.sha256
    only = load_tasks("generated", "test", task_types=("beauty", "fashion"))
    assert {task.kind for task in only} == {"beauty", "fashion"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"split": "valid"}, "'valid' by 'clean'.*train, dev, test"),
        ({"split_by": "worker"}, "clean, product"),
        ({"task_types": ("toys",)}, r"\['toys'\].*beauty, electronics"),
        ({"task_types": ()}, "none.*beauty"),
        ({"count": 0}, "0 tasks asked for"),
        ({"count": 10**6}, "1000000 tasks asked for"),
        ({"compat": "verl-agent", "split": "dev"}, "train and test"),
        ({"compat": "verl-agent", "split_by": "product"}, "by 'clean'"),
        ({"goals": "human"}, "123 human goals leave none for split train"),
    ],
)
def test_what_cannot_be_asked_for(settings, said):
    with pytest.raises(ValueError, match=said):
        load_tasks("generated", **{"split": "train", **settings})


def test_a_goal_keeps_its_name_in_messages():
    goal = replace(small_goals().goals[0], attributes=())
    assert goal.name.startswith("goal 'Find me soft shirts, and price") and "B000000001" in goal.name

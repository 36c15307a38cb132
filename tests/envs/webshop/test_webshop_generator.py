"""The generated catalogue: the same everywhere, in WebShop's formats, with its oddities and its competition."""

import hashlib
import json
import subprocess
import sys
import time

import pytest
from webshop_worlds import BENCHMARK, generated, play

from trca_jax.envs.webshop.brief import brief
from trca_jax.envs.webshop.catalog import ATTRIBUTES, HUMAN, ITEMS, TITLE_NOUNS
from trca_jax.envs.webshop.data import load_products
from trca_jax.envs.webshop.engine import TOP
from trca_jax.envs.webshop.generator import files, title_nouns
from trca_jax.envs.webshop.lexicon import LINES
from trca_jax.envs.webshop.queries import offered_queries
from trca_jax.envs.webshop.tasks import CATEGORIES, load_tasks

SHA1 = "657902b0cb578b942f3c6b48a08b7e1f9a792d5c"


def test_it_is_the_same_on_every_machine():
    text = json.dumps(files(), sort_keys=True)
    assert hashlib.sha1(text.encode()).hexdigest() == SHA1
    code = "from trca_jax.envs.webshop.generator import files; import json, hashlib; "
    code += "print(hashlib.sha1(json.dumps(files(), sort_keys=True).encode()).hexdigest())"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == SHA1
    )


def test_size_and_kinds():
    shop, listed = generated()
    assert len(shop.products) == 1022
    assert len(listed) == 3189
    categories = [product.category for product in shop.products]
    assert set(categories) == set(CATEGORIES) and min(map(categories.count, CATEGORIES)) > 190
    assert {len(product.options) for product in shop.products} == {0, 1, 2, 3}
    assert {product.query for product in shop.products} == {line.query for line in LINES}


def test_its_files_are_a_data_folder(tmp_path):
    for name, content in files().items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert load_products(str(tmp_path)) == generated()[0].products
    assert set(files()) == {ITEMS, ATTRIBUTES, HUMAN, TITLE_NOUNS}
    tasks = load_tasks(str(tmp_path), "test")
    assert [task.instruction for task in tasks] == [task.instruction for task in load_tasks("generated", "test")]


def test_every_oddity_is_there():
    items, products = files()[ITEMS], generated()[0].products
    values = [value for product in products for own in product.options.values() for value in own]
    assert {item["asin"] for item in items} >= {"nan", "B0TOOLONG12"}
    assert len(items) == len(products) + 3
    for found in (
        [p for p in products if not p.title],
        [p for p in products if not p.description],
        [p for p in products if "" in p.bullets],
        [p for p in products if not p.bullets],
        [p for p in products if any("\n" in bullet for bullet in p.bullets)],
        [p for p in products if "<p>" in p.description],
        [p for p in products if not p.attributes],
        [p for p in products if any(len(own) == 50 for own in p.options.values())],
        [p for p in products if p.price_range[0] >= 980],
        [p for p in products if p.nouns and len(set(p.nouns)) < len(p.nouns)],
        [i for i in items if not i["pricing"]],
        [i for i in items if isinstance(i["small_description"], str)],
        [v for v in values if '"' in v],
        [v for v in values if not v.isascii()],
        [v for v in values if " | " in v],
        [v for v in values if "'" in v],
        [v for v in values if v in ("features", "description")],
    ):
        assert found
    assert sum(len(p.price_range) == 2 for p in products) > 50
    assert any({"small"} <= set(a) & set(b) for p in products for a, b in [[*p.options.values(), (), ()][:2]])


def test_goals_have_attributes_options_and_bounds_and_products_compete():
    shop, listed = generated()
    assert all(goal.attributes for goal in listed.goals)
    assert 0.8 < sum(bool(goal.options) for goal in listed.goals) / len(listed) < 1
    assert 0.9 < sum(goal.price_upper < 1000 for goal in listed.goals) / len(listed) < 1
    some = listed.goals[:300]
    firsts = [shop.index.search(goal.text, TOP) for goal in some]
    first = sum(shop.products[found[0]].asin == goal.product.asin for goal, found in zip(some, firsts, strict=True))
    page = sum(
        any(shop.products[n].asin == goal.product.asin for n in found[:10])
        for goal, found in zip(some, firsts, strict=True)
    )
    assert 0.2 < first / 300 < 0.6
    assert page / 300 > 0.7
    others = [shop.products[n] for n in shop.index.search(some[0].product.query, TOP)]
    assert sum(product.query == some[0].product.query for product in others) > 20


def test_attributes_stand_in_the_instruction_and_in_the_bullets():
    _, listed = generated()
    for goal in listed.goals[::17]:
        said = " ".join(goal.product.bullets).lower()
        assert all(attribute in goal.text for attribute in goal.attributes)
        assert said.count(":") < 2 or all(attribute in said for attribute in goal.attributes)  # odd ones have no colon


@pytest.mark.parametrize(
    ("title", "nouns"),
    [
        ("Harrow & Finch Men's Oxford Dress Shirt, Long Sleeve", "harrow finch men's oxford dress shirt sleeve"),
        ("", ""),
        ("Novacove Laser Home Projector, Heavy Duty", "novacove home projector duty"),
    ],
)
def test_nouns(title, nouns):
    assert title_nouns(title) == nouns.split()


def test_the_vocabulary_holds_every_word_of_a_session():
    known = set(BENCHMARK.vocabulary().split())
    assert len(known) < 5000
    shop, listed = generated()
    plain = lambda text: set(brief(text).split())  # noqa: E731
    words = lambda command: command.lower().translate(str.maketrans("[]", "  ")).split()  # noqa: E731
    for goal in listed.goals[::40]:
        actions = [
            f"search[{goal.product.query}]",
            "click[next >]",
            "click[< prev]",
            f"search[<q> {goal.product.query}]",
        ]
        state = play(shop, goal, actions)[2][-1]
        actions.append(f"click[{shop.products[state.found[0]].asin.lower()}]")
        actions += ["click[features]", "click[< prev]", "click[description]", "click[< prev]", "click[buy now]"]
        first, steps, _ = play(shop, goal, actions)
        for _, text, offered in steps[:-1]:  # nobody acts on the last page
            assert plain(text) <= known, plain(text) - known
            assert {word for command in offered for word in words(command)} <= known
        assert plain(goal.text) <= known and plain(first) <= known
        assert {word for query in offered_queries(goal.text) for word in query.split()} <= known


def test_many_episodes_in_one_process_are_small():
    # the peak of this process's own memory: what `resource` tells includes the parent's
    code = """
import re
from random import Random
from trca_jax.envs.webshop import Webshop
benchmark = Webshop()
tasks = benchmark.tasks("train", 128)
envs = [benchmark.make_env() for _ in tasks]
seen = [env.reset(task) for env, task in zip(envs, tasks)]
rng = Random(0)
for _ in range(15):
    seen = [e.step(rng.choice(s.admissible or ("",)).replace("<your query>", "soft shirt")) for e, s in zip(envs, seen)]
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""
    assert float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) < 200


def test_it_is_made_fast():
    files.cache_clear()
    start = time.thread_time()
    files()
    assert time.thread_time() - start < 2

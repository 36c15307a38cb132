"""The real small catalogue (where it is at hand), the generated one, and small episodes in words, for tests."""

import json
from functools import cache

import numpy as np

from trca_jax.envs.base import Task
from trca_jax.envs.bm25 import Index
from trca_jax.envs.webshop import Webshop, render, verl_agent
from trca_jax.envs.webshop.catalog import make_products
from trca_jax.envs.webshop.data import load_shop
from trca_jax.envs.webshop.engine import DONE, Shop, State
from trca_jax.envs.webshop.tasks import goal_list
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import encode_bindings, encode_facts

BENCHMARK = Webshop()
T = 40  # steps that judgements are made for; one shape, compiled once


def golden(shared_data, name):
    return json.loads((shared_data / "webshop" / f"golden_{name}.json").read_bytes())


def real(shared_data):
    """Shop and goals of the recorded sessions."""
    source = str(shared_data / "webshop")
    return load_shop(source), goal_list(source, "synthetic", "webshop", 0)


def generated():
    return load_shop("generated"), goal_list("generated", "synthetic", "webshop", 0)


def item(asin="B000000001", **changes):
    """One product in WebShop's format."""
    return {
        "asin": asin,
        "name": "Soft Shirt",
        "category": "fashion",
        "query": "shirts",
        "product_category": "Clothes › Shirts",
        "full_description": "a soft shirt",
        "small_description": ["machine wash"],
        "pricing": "$10.00",
        "customization_options": "",
    } | changes


def small_shop(*items):
    nouns = {entry["asin"]: ["shirt"] for entry in items}
    own = {entry["asin"]: {"attributes": ["machine wash"]} for entry in items}
    products = make_products(items, own, nouns=nouns)
    return Shop(products, Index.build([p.document() for p in products], [p.asin for p in products]))


def observation(shop, state, goal):
    return verl_agent.observation(render.text(shop, state, goal.text), goal.text)


def play(shop, goal, actions, seed=0):
    """First observation, steps (action, observation after it, commands before it), and all states."""
    state = State()
    first, steps, states = observation(shop, state, goal), [], [state]
    for action in actions:
        offered = verl_agent.actions(state.page, shop.menu(state))
        state = shop.step(state, goal, action, seed=seed)
        steps.append((action, observation(shop, state, goal), offered))
        states.append(state)
    return first, steps, states


def reward_of(before, after):
    return after.outcome.total if after.page == DONE and after is not before else 0.0


def task(text):
    return Task("t", "webshop", text, "fashion", None)


def follow(text, first, steps):
    """The adapter after an episode, and the facts of its transitions."""
    adapter = BENCHMARK.adapter(task(text), first)
    return adapter, [adapter.transition(*step) for step in steps]


@cache
def judge():
    return Judge(BENCHMARK.library)


def judgements(rows, texts):
    """bool [R,T,J] and bound [R,J] of facts per rollout."""
    symbols = judge().symbols()
    facts = encode_facts(rows, BENCHMARK.library, symbols, T)
    bindings = encode_bindings([BENCHMARK.bind(task(text)) for text in texts], BENCHMARK.library, symbols)
    return tuple(map(np.asarray, judge()(facts, bindings)))


def fired(text, first, steps):
    """The items that fire, a set for each step."""
    _, rows = follow(text, first, steps)
    judged, _ = judgements([rows], [text])
    return [{judge().items[j] for j in np.flatnonzero(row)} for row in judged[0, : len(rows)]]


def bound(text):
    _, known = judgements([[]], [text])
    return {judge().items[j] for j in np.flatnonzero(known[0])}

"""The scripted shopper and the noise that is mixed into demonstrations."""

import random
from collections import Counter

import pytest
from webshop_worlds import BENCHMARK, task

from trca_jax.envs.webshop import Webshop
from trca_jax.envs.webshop.queries import offered_queries
from trca_jax.envs.webshop.shopper import wander


def test_wander_seldom_buys():
    rng = random.Random(0)
    drawn = Counter(wander(rng, ("click[a]", "click[buy now]", "click[b]")) for _ in range(20_000))
    assert drawn["click[buy now]"] / 20_000 == pytest.approx(1 / 30, abs=0.01)
    assert drawn["click[a]"] / drawn["click[b]"] == pytest.approx(1, abs=0.1)
    assert wander(rng, ("click[buy now]",)) == "click[buy now]"
    with pytest.raises(ValueError, match="no admissible command"):
        wander(rng, ())


def play(benchmark, env, game, share, seed, length=15):
    seen = env.reset(game)
    adapter = benchmark.adapter(game, seen.text)
    agent = benchmark.demonstrator(adapter, random.Random(seed), share)
    actions = []
    while len(actions) < length and not seen.done:
        actions.append(agent.act(seen.admissible))
        free = actions[-1].startswith("search[") and "search[<your query>]" in seen.admissible
        assert free or actions[-1] in seen.admissible
        assert actions[-1] != "search[<your query>]"
        admissible, seen = seen.admissible, env.step(actions[-1])
        adapter.transition(actions[-1], seen.text, admissible)
    return actions, seen


@pytest.mark.parametrize("queries", ["free", "offered"])
def test_it_buys_what_is_asked_for_more_often_than_not_and_noise_seldom(queries):
    benchmark = Webshop(queries=queries)
    env, games = benchmark.make_env(), benchmark.tasks("dev", 100)
    won = {share: sum(play(benchmark, env, game, share, 0)[1].won for game in games) for share in (1.0, 0.5, 0.0)}
    assert won[1.0] >= 50 > 35 > won[0.5] > won[0.0]
    assert won[0.0] <= 8


def test_it_shops_in_the_real_catalogue_too(shared_data):
    benchmark = Webshop(source=str(shared_data / "webshop"))
    env, games = benchmark.make_env(), benchmark.tasks("test", 100)
    seen = [play(benchmark, env, game, 1.0, 0)[1] for game in games]
    assert sum(end.won for end in seen) >= 40
    assert sum(end.reward for end in seen) / 100 > 0.5


def test_the_same_seed_plays_the_same():
    env, game = BENCHMARK.make_env(), BENCHMARK.tasks("test").tasks[7]
    once, again, other = (play(BENCHMARK, env, game, 0.5, seed)[0] for seed in (3, 3, 4))
    assert once == again != other


def test_where_nothing_is_known_it_still_answers_something_admissible():
    adapter = BENCHMARK.adapter(task("?"), "?")
    agent = BENCHMARK.demonstrator(adapter, random.Random(1), 1.0)
    assert agent.act(("click[a]", "click[b]")) in ("click[a]", "click[b]")
    assert agent.act(("click[a]", "click[back to search]")) == "click[back to search]"


@pytest.mark.parametrize(
    "text", ["", "?", "Find me ", "[[]]", "Find me x[1] y with z: [w], and price lower than 5.00 dollars"]
)
def test_offered_queries_are_commands_for_any_text(text):
    queries = offered_queries(text)
    assert queries and len(set(queries)) == len(queries)
    assert all(query and not set("[]") & set(query) and query == query.lower().strip() for query in queries)

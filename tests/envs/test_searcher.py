"""The scripted searcher and the noise that is mixed into demonstrations."""

import random
from collections import Counter

import pytest
from alfworld_texts import BENCHMARK, first, task

from trca_jax.envs.alfworld import Alfworld
from trca_jax.envs.alfworld.searcher import Demonstrator, Searcher, wander

ADMISSIBLE = ("close drawer 1", "go to bed 1", "go to desk 1", "help", "inventory", "look", "take pen 1 from bed 1")


def test_wander_walks_looks_and_seldom_grabs():
    rng = random.Random(0)
    drawn = Counter(wander(rng, ADMISSIBLE).split()[0] for _ in range(20_000))
    share = {verb: count / 20_000 for verb, count in drawn.items()}
    assert share["go"] == pytest.approx(0.65, abs=0.02)
    assert share["look"] + share["inventory"] + share["close"] == pytest.approx(0.31, abs=0.02)
    assert share["take"] == pytest.approx(0.04, abs=0.01)
    assert "help" not in drawn


def test_wander_needs_a_command():
    assert wander(random.Random(0), ("help",)) == "help"
    with pytest.raises(ValueError, match="no admissible command"):
        wander(random.Random(0), ())


def test_the_searcher_takes_a_target_in_sight_and_opens_what_is_closed():
    sentence = "put some pen on drawer."
    adapter = BENCHMARK.adapter(task(sentence), first(sentence, "bed 1", "drawer 1"))
    searcher = Searcher(adapter, random.Random(0))
    adapter.transition("go to bed 1", "You arrive at bed 1. On the bed 1, you see a pen 1.", ())
    assert searcher.act(("go to drawer 1", "look", "take pen 1 from bed 1")) == "take pen 1 from bed 1"
    adapter.transition("take pen 1 from bed 1", "You pick up the pen 1 from the bed 1.", ())
    assert searcher.act(("go to drawer 1", "look", "move pen 1 to bed 1")) == "go to drawer 1"
    adapter.transition("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed.", ())
    assert searcher.act(("go to bed 1", "look", "open drawer 1")) == "open drawer 1"


def test_without_a_goal_it_still_answers_something_admissible():
    adapter = BENCHMARK.adapter(task("?"), "?")
    assert Searcher(adapter, random.Random(1)).act(("go to bed 1", "look")) in ("go to bed 1", "look")


def play(benchmark, env, game, share, seed, length=25):
    observation = env.reset(game)
    adapter = benchmark.adapter(game, observation.text)
    agent = Demonstrator(adapter, random.Random(seed), share)
    actions = []
    while len(actions) < length and not observation.done:
        actions.append(agent.act(observation.admissible))
        assert actions[-1] in observation.admissible
        admissible, observation = observation.admissible, env.step(actions[-1])
        adapter.transition(actions[-1], observation.text, admissible)
    return actions, observation.won


def test_it_solves_most_real_games_within_25_steps_and_noise_few(shared_data):
    benchmark = Alfworld(source=str(shared_data / "alfworld"))
    env, games = benchmark.make_env(), benchmark.tasks("valid_seen")
    won = {
        share: sum(play(benchmark, env, game, share, seed)[1] for game in games for seed in range(2))
        for share in (1.0, 0.0)
    }
    assert won[1.0] >= 0.75 * 36
    assert won[0.0] <= 0.1 * 36


def test_the_same_seed_plays_the_same(shared_data):
    benchmark = Alfworld(source=str(shared_data / "alfworld"))
    env, (game, _) = benchmark.make_env(), benchmark.tasks("valid_seen", 2)
    once, again, other = (play(benchmark, env, game, 0.5, seed)[0] for seed in (3, 3, 4))
    assert once == again != other

"""The shop behind the protocol of environments."""

import pickle
from dataclasses import replace

import pytest

from trca_jax.envs.pool import EnvPool
from trca_jax.envs.webshop import Webshop


def env_and_task(**changes):
    benchmark = Webshop()
    task = benchmark.tasks("test").tasks[0]
    errand = replace(task.payload, goal=replace(task.payload.goal, **changes))
    return benchmark.make_env(), replace(task, payload=errand)


def test_an_episode_of_the_environment():
    env, task = env_and_task()
    seen = env.reset(task)
    assert (seen.text, seen.admissible) == ("'Search'", ("search[<your query>]", "click[search]"))
    goal = task.payload.goal
    seen = env.step(f"search[{goal.text}]")
    asin = f"click[{goal.product.asin.lower()}]"
    while asin not in seen.admissible:
        seen = env.step("click[next >]")
    seen = env.step(asin)
    for value in goal.options.values():
        seen = env.step(f"click[{value}]")
    assert (seen.reward, seen.done, seen.won) == (0.0, False, False)
    assert env.hidden_state().options == goal.options
    seen = env.step("click[buy now]")
    assert (seen.reward, seen.done, seen.won, seen.admissible) == (1.0, True, True, ())
    assert seen.text.startswith("Thank you for shopping")
    again = env.step("click[buy now]")
    assert (again.reward, again.done) == (0.0, True)


def test_offered_queries_are_searches_that_the_shop_knows():
    env = Webshop(queries="offered").make_env()
    seen = env.reset(Webshop().tasks("test").tasks[3])
    assert len(seen.admissible) >= 3 and all(command.startswith("search[") for command in seen.admissible)
    for command in seen.admissible:
        assert "Page 1" in env.step(command).text


@pytest.mark.parametrize(
    ("changes", "said"), [({"attributes": ()}, "no attribute"), ({"price_upper": 0}, "price bound is 0")]
)
def test_a_goal_that_cannot_be_rewarded_is_named_before_play(changes, said):
    env, task = env_and_task(**changes)
    with pytest.raises(ValueError, match=said) as error:
        env.reset(task)
    assert task.payload.goal.text in str(error.value)


def test_unknown_settings():
    for settings_ in ({"option_match": "best"}, {"queries": "some"}):
        with pytest.raises(ValueError, match="original, fixed and one of free, offered"):
            Webshop(**settings_).make_env()


def test_slots_in_a_worker_play_their_own_tasks():
    benchmark = Webshop()
    tasks = benchmark.tasks("test", 3).tasks
    with EnvPool(benchmark.make_env, slots=3, workers=1) as pool:
        pool.reset([0, 1, 2], tasks)
        assert [seen.text for seen in pool.receive([0, 1, 2])] == ["'Search'"] * 3
        pool.step([0, 1, 2], [f"search[{task.payload.goal.product.query}]" for task in tasks])
        found = [seen.text for seen in pool.receive([0, 1, 2])]
    for task, text in zip(tasks, found, strict=True):
        env = benchmark.make_env()
        env.reset(task)
        assert env.step(f"search[{task.payload.goal.product.query}]").text == text
    assert len(set(found)) == 3


def test_tasks_travel_to_workers():
    task = Webshop().tasks("test").tasks[0]
    sent = pickle.dumps(task)
    assert len(sent) < 20_000
    assert pickle.loads(sent).payload.goal.record() == task.payload.goal.record()

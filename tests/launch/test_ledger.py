"""The credit of one episode against sums by hand, and what is told about it."""

from types import SimpleNamespace

import numpy as np
import pytest
from boxes import task
from fake_world import LIBRARY, World

from configs.alfworld import get_config
from launch.ledger import Bookkeeper
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.library import select

NOTHING = np.zeros(0, np.int32)


def episode(*actions):
    """Played in the world of boxes, whose box 1 is red, as the task asks."""
    env = World().make_env()
    made = Episode(task("t"), 0, "append")
    seen = env.reset(made.task)
    made.observe(seen)
    for action in actions:
        made.steps.append(Step(NOTHING, NOTHING, NOTHING, None, action, (0, 0), seen.text, seen.admissible))
        seen = env.step(action or "")
        made.observe(seen)
    return made


def bookkeeper(**settings):
    config = get_config()
    config.env.max_steps = 6
    config.credit.trca.update(evidence=1.0, invalidity=1.0, **settings)
    return Bookkeeper(SimpleNamespace(benchmark=World(), judge=Judge(LIBRARY)), config)


def test_an_episode_by_hand():
    """One Evidence item of weight 1, two Invalidity items of −1/2, one Execution item of 1; λ = 0.8, γ = 0.95."""
    ledger = bookkeeper()(episode("open 2", "fly", "open 1"))
    assert {item.name: item.weight for item in ledger.items} == {
        "first_look": 1.0, "unparsed": -0.5, "refused": -0.5, "goal_opened": 1.0
    }  # fmt: skip
    look, fly, goal = ledger.entries
    assert [e.foundational for e in ledger.entries] == [1.0, -0.5, 2.0]
    assert [e.breakthrough for e in ledger.entries] == [1.0, 0.0, 1.0]
    np.testing.assert_allclose([e.rubric for e in ledger.entries], [1.0, -0.1, 1.2], rtol=1e-6)
    assert [e.r_env for e in ledger.entries] == [0.0, 0.0, 1.0]
    np.testing.assert_allclose([e.to_come for e in ledger.entries], [2.8905, 1.99, 2.2], rtol=1e-6)
    np.testing.assert_allclose([e.so_far for e in ledger.entries], [1.0, 0.905, 2.8905], rtol=1e-6)
    assert [(p.category, p.fired, p.foundational, p.breakthrough) for p in goal.parts] == [
        ("evidence", (("first_look", False),), 1.0, 0.0), ("execution", (("goal_opened", True),), 1.0, 1.0)
    ]  # fmt: skip
    assert [(p.category, p.weight, p.fired) for p in fly.parts] == [("invalidity", -0.5, (("refused", True),))]
    assert look.context == {"opened": ()} and goal.context == {"opened": ("blue",)}
    assert [e.number for e in ledger.entries] == [1, 2, 2]
    assert ledger.covered == {"first_look", "refused", "goal_opened"}


def test_the_running_return_does_not_know_the_future():
    keep = bookkeeper()
    whole = keep(episode("open 2", "fly", "wait", "open 1")).entries
    for n in range(1, 5):
        part = keep(episode(*("open 2", "fly", "wait", "open 1")[:n])).entries
        assert part[-1].so_far == pytest.approx(part[0].to_come) == pytest.approx(whole[n - 1].so_far)


@pytest.mark.parametrize("settings", [{}, {"budget_mode": "item"}, {"lam": 0.3, "execution": 2.0, "gamma": 0.5}])
def test_the_categories_add_up_to_the_rewards(settings):
    for entry in bookkeeper(**settings)(episode(None, "open 3", "fly", "open 3", "open 1")).entries:
        assert sum(part.foundational for part in entry.parts) == pytest.approx(entry.foundational)
        assert sum(part.breakthrough for part in entry.parts) == pytest.approx(entry.breakthrough)


def test_an_item_of_its_own_budget_weighs_all_of_it():
    ledger = bookkeeper(budget_mode="item")(episode(None))
    assert {item.weight for item in ledger.items} == {1.0, -1.0}
    assert ledger.entries[0].foundational == -1.0


def test_before_the_first_action_and_after_a_failure_there_is_no_entry():
    assert bookkeeper()(episode()).entries == ()
    broken = episode("open 2")
    broken.failure = "broken"
    ledger = bookkeeper()(broken)
    assert ledger.entries == () and ledger.covered == frozenset() and len(ledger.items) == 4


def test_a_library_that_is_judged_in_part():
    config = get_config()
    config.env.max_steps = 6
    part = select(LIBRARY, ("opened",), (), ("first_look",))
    ledger = Bookkeeper(SimpleNamespace(benchmark=World(), judge=Judge(part)), config)(episode("open 2", "open 1"))
    assert [item.name for item in ledger.items] == ["unparsed", "refused", "goal_opened"]
    assert [[part.fired for part in entry.parts] for entry in ledger.entries] == [[], [(("goal_opened", True),)]]

"""From episodes to the credit batch: values by hand, context ids, and nothing that the agent could not see."""

import dataclasses

import numpy as np
import pytest
from boxes import COMMANDS, task
from fake_world import DECLARATION, LIBRARY, World

from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.judge import credit_batch, fired_categories, transitions
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.library import select

ROOM = "you see box 1 box 2 box 3 ."
TIME, NOTHING = "time goes by .", "nothing happens ."
RED, BLUE = "you open box 1 . it is red .", "you open box 2 . it is blue ."


@pytest.fixture(scope="module")
def judge():
    return Judge(World().library)


def episode(*moves, goal="red", group=0, won=False, **more):
    """moves: (action, answer, reward)."""
    blank, steps, before = np.zeros(0, np.int32), [], ROOM
    for action, after, reward in moves:
        steps.append(Step(blank, blank, blank, None, action, (0, 0), before, COMMANDS, after, reward))
        before = after
    return Episode(task(f"{group}", goal), group, "append", ROOM, steps, won=won, **more)


@pytest.fixture(scope="module")
def played():
    return [
        episode(("open 2", BLUE, 0.0), ("open 1", RED, 1.0), won=True),
        episode(("wait", TIME, -0.5), (None, NOTHING, 0.0), ("open 2", BLUE, 0.0)),
        episode(("open 2", BLUE, 0.0), ("open 2", BLUE, 0.0), ("dance", NOTHING, 0.0), goal="blue", group=1, won=True),
        episode(("open 1", RED, 1.0), won=True, failure="worker died"),
    ]


def test_the_arrays_of_four_episodes(played, judge):
    batch = credit_batch(played, World(), judge, max_steps=3)
    batch.check({"context"})
    items = list(judge.items)
    assert items == ["first_look", "unparsed", "refused", "goal_opened"]
    fired = {(r, t): [items[j] for j in np.flatnonzero(batch.judgement[r, t])] for r in range(4) for t in range(3)}
    assert fired == {
        (0, 0): ["first_look"], (0, 1): ["first_look", "goal_opened"], (0, 2): [],
        (1, 0): [], (1, 1): ["unparsed"], (1, 2): ["first_look"],
        (2, 0): ["first_look", "goal_opened"], (2, 1): [], (2, 2): ["refused"],
        (3, 0): [], (3, 1): [], (3, 2): [],
    }  # fmt: skip
    assert batch.item_category.tolist() == [[0, 1, 1, 2]] * 4
    assert batch.item_mask.all()
    assert batch.length.tolist() == [2, 3, 3, 0]
    assert batch.outcome.tolist() == [1, 0, 1, 1] and batch.group.tolist() == [0, 0, 1, 0]
    assert batch.r_env.tolist() == [[0, 1, 0], [-0.5, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert batch.valid.tolist() == [[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]]


def test_facts_and_what_was_known_around_them(played):
    facts, known = transitions(played[1], World())
    assert [f["opened"] for f in facts] == ["nothing", "nothing", "blue"]
    assert [f["accepted"] for f in facts] == [True, None, True]
    assert [k["opened"] for k in known] == [(), (), (), ("blue",)]
    assert transitions(played[3], World()) == ([], [])


def test_where_each_category_fired(played, judge):
    batch = credit_batch(played, World(), judge, max_steps=3)
    evidence, invalidity, execution = fired_categories(batch)
    assert evidence.tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 0]]
    assert invalidity.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert execution.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]
    everything = dataclasses.replace(batch, judgement=np.ones_like(batch.judgement))
    assert [int(where.sum()) for where in fired_categories(everything)] == [8, 8, 8]
    unbound = dataclasses.replace(everything, item_mask=batch.item_mask & (np.array(batch.item_category) == 2))
    assert [int(where.sum()) for where in fired_categories(unbound)] == [0, 0, 8]


def loop_contexts(episodes, states):
    """Pairs of places that must have equal ids: same task and same state. states[r]: before each step, and last."""
    places = [(r, t) for r, e in enumerate(episodes) if not e.failure for t in range(len(e.steps) + 1)]
    return {(a, b): episodes[a[0]].group == episodes[b[0]].group and states[a[0]][a[1]] == states[b[0]][b[1]]
            for a in places for b in places}  # fmt: skip


@pytest.mark.parametrize("context", ["fields", "observation"])
def test_context_ids_are_equal_where_task_and_context_are(played, judge, context):
    batch = credit_batch(played, World(), judge, max_steps=3, context=context)
    if context == "fields":
        states = [["", "b", "br"], ["", "", "", "b"], ["", "b", "b", "b"], []]
    else:
        states = [[ROOM, *(s.after for s in e.steps)] for e in played]
    ids = {}
    for r, e in enumerate(played[:3]):
        for t in range(len(e.steps)):
            ids.setdefault((r, t), batch.context[r, t])
            ids[r, t + 1] = batch.next_context[r, t]
            if t + 1 < len(e.steps):
                assert batch.next_context[r, t] == batch.context[r, t + 1]
    for (a, b), equal in loop_contexts(played, states).items():
        assert (ids[a] == ids[b]) == equal, (a, b)
    assert not batch.context[3].any() and not batch.next_context[3].any()


def test_contexts_stay_in_range_when_all_of_them_differ(judge):
    """One step each, four tasks: the last contexts must not push those before an action beyond R·T - 1."""
    episodes = [episode(("open 1", RED, 0.0), group=g) for g in range(4)]
    batch = credit_batch(episodes, World(), judge, max_steps=1, context="observation")
    batch.check({"context"})
    assert sorted(batch.context[:, 0]) == [0, 1, 2, 3]
    assert len(set(batch.next_context[:, 0]) | set(batch.context[:, 0])) == 8


def test_nothing_later_or_hidden_reaches_a_judgement(played, judge):
    """Other ends, other labels, another hidden state: what was judged before stays bit by bit."""
    before = credit_batch(played, World(), judge, max_steps=3)
    ends = [("open 1", RED, 7.0), (None, NOTHING, -3.0)]
    for cut in range(3):
        changed = []
        for e in played:
            steps = list(e.steps)
            for t in range(cut, len(steps)):
                action, after, reward = ends[t % 2]
                steps[t] = dataclasses.replace(steps[t], action=action, after=after, reward=reward)
            hidden = {**e.task.payload, "goal": "green", "colours": ("blue",) * 3}
            changed.append(
                dataclasses.replace(e, steps=steps, won=not e.won, task=dataclasses.replace(e.task, payload=hidden))
            )
        after = credit_batch(changed, World(), judge, max_steps=3)
        np.testing.assert_array_equal(after.judgement[:, :cut], before.judgement[:, :cut])
        np.testing.assert_array_equal(after.item_mask, before.item_mask)
        np.testing.assert_array_equal(after.r_env[:, :cut], before.r_env[:, :cut])
        np.testing.assert_array_equal(after.outcome, 1 - before.outcome)
        live = np.arange(3) < before.length[:, None]
        same = (before.context[..., None, None] == before.context)[:, : cut + 1, :, : cut + 1]
        again = (after.context[..., None, None] == after.context)[:, : cut + 1, :, : cut + 1]
        real = (live[..., None, None] & live)[:, : cut + 1, :, : cut + 1]
        np.testing.assert_array_equal(same[real], again[real])


def test_labels_alone_change_the_outcome_alone(played, judge):
    before = credit_batch(played, World(), judge, max_steps=3)
    flipped = [dataclasses.replace(e, won=not e.won, truncated=not e.truncated) for e in played]
    after = credit_batch(flipped, World(), judge, max_steps=3)
    for name in ("judgement", "item_mask", "r_env", "length", "group", "context", "next_context", "valid"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name), err_msg=name)


def test_the_adapter_is_told_each_transition_once_and_in_order(played, judge):
    world = World()
    credit_batch(played, world, judge, max_steps=3)
    assert [a.told for a in world.adapters] == [
        [] if e.failure else [(s.action, s.after, COMMANDS) for s in e.steps] for e in played
    ]


def test_an_unknown_context_is_refused(played, judge):
    with pytest.raises(ValueError, match="context 'text' is unknown, expected 'fields' or 'observation'"):
        credit_batch(played, World(), judge, max_steps=3, context="text")


def test_an_episode_longer_than_the_arrays_is_refused(played, judge):
    with pytest.raises(ValueError, match="episode 1 has 3 steps, max_steps is 2"):
        credit_batch(played, World(), judge, max_steps=2)


def test_a_selection_of_the_library_is_judged(played, judge):
    """Without an operator its item is gone and the others judge as before."""
    whole = credit_batch(played, World(), judge, max_steps=3)
    narrow = Judge(select(LIBRARY, DECLARATION.contexts, (), ("refused",)))
    batch = credit_batch(played, World(), narrow, max_steps=3)
    assert narrow.items == ("first_look", "unparsed", "goal_opened")
    np.testing.assert_array_equal(batch.judgement, whole.judgement[..., [0, 1, 3]])
    np.testing.assert_array_equal(batch.context, whole.context)

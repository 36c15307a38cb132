"""Noisy retrieval: how much of it there is, that it is drawn the same again, and that it says nothing useful."""

import pytest
from searchqa_worlds import search

from trca_jax.envs.searchqa import Searchqa
from trca_jax.envs.searchqa.names import bare, key, mentions
from trca_jax.envs.searchqa.texts import read_information

BENCHMARK = Searchqa(noise_start=0.1, noise_end=0.9, noise_steps=10, limit=6, k=5, reward="f1")
POOL = BENCHMARK.tasks("train").tasks
ROLLOUTS = [task for task in POOL[:100] for _ in range(4)]
SEARCHES = len(ROLLOUTS) * BENCHMARK.limit


def drawn(tasks):
    return [task.payload.distractors for task in tasks]


@pytest.mark.parametrize(("iteration", "share"), [(0, 0.1), (5, 0.1 + 0.8 / 3), (10, 0.9), (99, 0.9)])
def test_the_share_of_noise_follows_the_curriculum(iteration, share):
    noise = [bool(d) for own in drawn(BENCHMARK.curriculum(ROLLOUTS, POOL, iteration, 0)) for d in own]
    assert len(noise) == SEARCHES
    assert sum(noise) / SEARCHES == pytest.approx(share, abs=4 * (share * (1 - share) / SEARCHES) ** 0.5)


def test_noise_is_a_function_of_seed_iteration_and_rollout():
    first = drawn(BENCHMARK.curriculum(ROLLOUTS, POOL, 5, 0))
    assert drawn(BENCHMARK.curriculum(ROLLOUTS, POOL, 5, 0)) == first
    assert drawn(BENCHMARK.curriculum(ROLLOUTS[:8], POOL, 5, 0)) == first[:8]
    for iteration, seed in ((6, 0), (5, 1)):
        assert drawn(BENCHMARK.curriculum(ROLLOUTS, POOL, iteration, seed)) != first
    assert len(set(first[:4])) == 4  # rollouts of one question have draws of their own


def test_tasks_stay_what_they_are_and_without_noise_nothing_is_drawn():
    noisy = BENCHMARK.curriculum(ROLLOUTS, POOL, 10, 0)
    assert [(t.id, t.instruction, t.kind) for t in noisy] == [(t.id, t.instruction, t.kind) for t in ROLLOUTS]
    assert all(t.instruction not in t.payload.distractors for t in noisy)
    assert Searchqa().curriculum(ROLLOUTS, POOL, 10, 0) == ROLLOUTS
    assert {t.payload.distractors for t in BENCHMARK.tasks("test")} == {()}  # what an evaluation plays
    with pytest.raises(ValueError, match="there are 1 to train on; give at least 2"):
        BENCHMARK.curriculum(ROLLOUTS, POOL[:1], 0, 0)


def test_noise_brings_other_documents_that_have_nothing_to_do_with_the_question():
    env = BENCHMARK.make_env()
    clean = mixed = 0
    for task in BENCHMARK.curriculum(POOL[::60], POOL, 10, 0):
        question = task.payload
        labels = [key(label) for label in (*question.golden_answers, *map(bare, question.supporting_titles))]
        env.reset(task)
        for distractor in question.distractors[:4]:
            found = read_information(env.step(search(question.supporting_titles[0])).text)
            assert 1 <= len(found) <= 5
            if distractor:
                assert not any(mentions(key(f"{d.title} {d.text}"), label) for d in found for label in labels)
                assert not any(mentions(key(question.question), key(bare(d.title))) for d in found)
                mixed += 1
            else:
                assert found[0].title == question.supporting_titles[0]
                clean += 1
    assert mixed > 5 * clean > 0


def test_an_evaluation_searches_what_is_asked_for():
    benchmark = Searchqa(noise_start=1.0, noise_end=1.0, noise_steps=1)
    env, (task,) = benchmark.make_env(), benchmark.tasks("test", 1).tasks
    title = task.payload.supporting_titles[0]
    env.reset(task)
    assert read_information(env.step(search(title)).text)[0].title == title
    env.reset(benchmark.curriculum([task], POOL, 0, 0)[0])
    assert title not in {d.title for d in read_information(env.step(search(title)).text)}

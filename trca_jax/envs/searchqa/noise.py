"""ZeroSearch's curriculum by rule: some searches bring documents of an unrelated question instead.

The published simulator is a language model that writes useful or useless documents; here the useful ones are what the
search engine finds, and the useless ones are what it finds for another question of the training set.
Source: spec/methods.md section 9.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from trca_jax.envs.base import Task
from trca_jax.envs.searchqa.names import bare, key, mentions
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.retrieval import Passage


def noisy_tasks(
    tasks: Sequence[Task], pool: Sequence[Task], *, probability: float, searches: int, seed: str
) -> list[Task]:
    """The tasks with `Question.distractors`: each of their searches is noise with this probability.

    tasks: one for each rollout; every one gets draws of its own, a function of seed and place. pool: tasks whose
    questions are searched instead of the queries. searches: of an episode, at most.
    Raises ValueError for a pool without two different questions.
    """
    if len({task.id for task in pool[:2]}) < 2:
        raise ValueError(f"noise is made of other questions, and there are {len(pool)} to train on; give at least 2")
    noisy = []
    for place, task in enumerate(tasks):
        rng = Random(f"{seed}/{place}")
        drawn = [(rng.random() < probability, rng.randrange(len(pool))) for _ in range(searches)]
        distractors = tuple(_other(task, pool, n).instruction if noise else "" for noise, n in drawn)
        noisy.append(replace(task, payload=replace(task.payload, distractors=distractors)))
    return noisy


def _other(task: Task, pool: Sequence[Task], n: int) -> Task:
    """The n-th task of the pool; the next one, if that is the task itself."""
    return pool[n] if pool[n].id != task.id else pool[(n + 1) % len(pool)]


def unrelated(passages: Iterable[Passage], question: Question) -> list[Passage]:
    """Those of the passages that neither name a gold alias or a supporting title nor are about what the question names.

    >>> lille = Question("t/1", "Where is Lille?", ("France",), "t", "t")
    >>> found = [Passage("1", "Lille", "It has a citadel.", 2.0), Passage("2", "Ghent", "It is in Belgium.", 1.0)]
    >>> [passage.title for passage in unrelated(found, lille)]
    ['Ghent']
    """
    asked = key(question.question)
    labels = [key(label) for label in (*question.golden_answers, *map(bare, question.supporting_titles))]
    return [
        passage
        for passage in passages
        if not mentions(asked, key(bare(passage.title)))
        and not any(mentions(key(f"{passage.title} {passage.text}"), label) for label in labels)
    ]

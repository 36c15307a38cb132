"""From episodes to a judged batch: bind the tasks, read every transition, run the operators, number the contexts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from trca_jax.credit.types import EVIDENCE, EXECUTION, INVALIDITY, CreditBatch
from trca_jax.envs.base import Benchmark
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.similarity import similar_groups
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import encode_bindings, encode_facts


def credit_batch(
    episodes: Sequence[Episode], benchmark: Benchmark, judge: Judge, *, max_steps: int, context: str = "fields",
    similarity: float = 0.0,
) -> CreditBatch:  # fmt: skip
    """The arrays that credit methods read; R = len(episodes), T = max_steps.

    judge: of the benchmark's library, or of what `select` takes of it. context: 'fields' numbers decision contexts by
    that library's context fields (TRCA), 'observation' by the exact text before the action (GiGPO and its kin),
    similarity above 0 by groups of similar texts (`similar_groups`). An episode that failed has length 0. Only
    observable text is read.
    Raises ValueError for an unknown context and for an episode of more than max_steps steps.
    """
    if context not in ("fields", "observation"):
        raise ValueError(f"context {context!r} is unknown, expected 'fields' or 'observation'")
    R, T = len(episodes), max_steps
    r_env, valid = np.zeros((R, T), np.float32), np.zeros((R, T), bool)
    length = np.array([0 if e.failure else len(e.steps) for e in episodes], np.int32)
    if max(length, default=0) > T:
        raise ValueError(f"episode {length.argmax()} has {length.max()} steps, max_steps is {T}; raise it")
    facts, paths = [], []
    for r, episode in enumerate(episodes):
        told, known = transitions(episode, benchmark)
        facts.append(told)
        if context == "fields":
            states = [tuple(fields[name] for name in judge.library.context) for fields in known]
        else:
            states = [*(step.before for step in episode.steps), episode.steps[-1].after] if told else []
        paths.append([(episode.group, state) for state in states])
        for t, step in enumerate(episode.steps[: length[r]]):
            r_env[r, t], valid[r, t] = step.reward, step.action is not None
    if context == "observation" and similarity:
        paths = _similar_paths(paths, similarity)
    here, following = context_ids(paths, T)
    symbols = judge.symbols()
    bindings = encode_bindings([benchmark.bind(e.task) for e in episodes], judge.library, symbols)
    judgement, bound = judge(encode_facts(facts, judge.library, symbols, T), bindings)
    return CreditBatch(
        judgement=np.asarray(judgement),
        item_category=np.broadcast_to(judge.category, bound.shape),
        item_mask=np.asarray(bound),
        r_env=r_env,
        outcome=np.array([e.won for e in episodes], np.float32),
        length=length,
        group=np.array([e.group for e in episodes], np.int32),
        context=here,
        next_context=following,
        valid=valid,
    )


def transitions(episode: Episode, benchmark: Benchmark) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Hashable]]]:
    """The facts of every transition, and what was known before each action and at the end (one more); none of an
    episode that failed."""
    adapter = benchmark.adapter(episode.task, episode.first_observation)
    facts: list[Mapping[str, Any]] = []
    known: list[Mapping[str, Hashable]] = []
    for step in () if episode.failure else episode.steps:
        known.append(adapter.context())
        facts.append(adapter.transition(step.action, step.after, step.admissible))
    return facts, [*known, adapter.context()] if facts else []


def fired_categories(batch: CreditBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where any bound Evidence, Invalidity and Execution item fired, each bool [R, T]; False after the end."""
    real = np.arange(batch.judgement.shape[1]) < batch.length[:, None]
    fired = (batch.judgement * batch.item_mask[:, None] * real[..., None]).astype(bool)
    categories = (EVIDENCE, INVALIDITY, EXECUTION)
    return tuple((fired & (batch.item_category == category)[:, None]).any(axis=2) for category in categories)


def _similar_paths(paths: Sequence[Sequence[tuple[int, str]]], threshold: float) -> list[list[Hashable]]:
    """(task, text) to (task, group of similar texts), the texts of a task in the order of its rollouts."""
    texts: dict[int, list[str]] = {}
    for path in paths:
        for task, text in path:
            texts.setdefault(task, []).append(text)
    groups = {task: iter(similar_groups(own, threshold)) for task, own in texts.items()}
    return [[(task, next(groups[task])) for task, _ in path] for path in paths]


def context_ids(paths: Sequence[Sequence[Hashable]], T: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense ids [R, T] of the contexts before and after every step. Contexts that an action was taken in come first, so
    that their ids stay below R·T whatever the last contexts are."""
    ids: dict[Hashable, int] = {}
    here, following = np.zeros((2, len(paths), T), np.int32)
    for r, path in enumerate(paths):
        here[r, : len(path[:-1])] = [ids.setdefault(state, len(ids)) for state in path[:-1]]
    for r, path in enumerate(paths):
        following[r, : len(path[1:])] = [ids.setdefault(state, len(ids)) for state in path[1:]]
    return here, following

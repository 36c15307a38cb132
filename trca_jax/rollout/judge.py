"""From episodes to a judged batch: bind the tasks, read every transition, run the operators, number the contexts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from trca_jax.credit.types import CreditBatch
from trca_jax.envs.base import Benchmark
from trca_jax.rollout.episode import Episode
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import encode_bindings, encode_facts


def credit_batch(
    episodes: Sequence[Episode], benchmark: Benchmark, judge: Judge, *, max_steps: int, context: str = "fields"
) -> CreditBatch:
    """The arrays that credit methods read; R = len(episodes), T = max_steps.

    context: 'fields' numbers decision contexts by the rubric's context fields (TRCA), 'observation' by the exact text
    before the action (GiGPO and its kin). An episode that failed has length 0. Only observable text is read.
    Raises ValueError for an unknown context.
    """
    if context not in ("fields", "observation"):
        raise ValueError(f"context {context!r} is unknown, expected 'fields' or 'observation'")
    R, T = len(episodes), max_steps
    ids: dict[Hashable, int] = {}
    here, following = np.zeros((2, R, T), np.int32)
    r_env, valid = np.zeros((R, T), np.float32), np.zeros((R, T), bool)
    length = np.array([0 if e.failure else len(e.steps) for e in episodes], np.int32)
    facts = []
    for r, episode in enumerate(episodes):
        adapter = benchmark.adapter(episode.task, episode.first_observation)
        facts.append([])
        for t, step in enumerate(episode.steps[: length[r]]):
            state = adapter.context() if context == "fields" else step.before
            here[r, t] = ids.setdefault((episode.group, state), len(ids))
            facts[r].append(adapter.transition(step.action, step.after, step.admissible))
            r_env[r, t], valid[r, t] = step.reward, step.action is not None
        if length[r]:
            state = adapter.context() if context == "fields" else episode.steps[-1].after
            last = ids.setdefault((episode.group, state), len(ids))
            following[r, : length[r]] = np.append(here[r, 1 : length[r]], last)
    symbols = judge.symbols()
    bindings = encode_bindings([benchmark.bind(e.task) for e in episodes], benchmark.library, symbols)
    judgement, bound = judge(encode_facts(facts, benchmark.library, symbols, T), bindings)
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

"""Episodes played by a script instead of the policy: what a warm start learns from."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from trca_jax.envs.base import Benchmark, Task
from trca_jax.envs.pool import EnvPool
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.episode import Episode, Step


def demonstrate(
    benchmark: Benchmark, tasks: Sequence[Task], codec: Codec, pool: EnvPool, *, share: float, max_steps: int, seed: int
) -> list[Episode]:
    """One episode a task by the benchmark's scripted player, which follows its plan with probability `share` a step
    and wanders otherwise. At most pool.slots tasks. Equal for equal seed and tasks; failed episodes are left out."""
    slots = list(range(len(tasks)))
    pool.reset(slots, tasks)
    episodes, players = [], []
    for slot, task, seen in zip(slots, tasks, pool.receive(slots), strict=True):
        adapter = benchmark.adapter(task, seen.text)
        players.append((adapter, benchmark.demonstrator(adapter, Random(f"{seed}/{slot}"), share)))
        episodes.append(Episode(task, 0, codec.prompt.layout, seen.text, failure=seen.failure))
        _prompt(episodes[-1], codec, seen, ())
    live = [i for i in slots if episodes[i].failure is None]
    histories: list[list[tuple[str, str]]] = [[] for _ in tasks]
    while live:
        actions = []
        for i in live:
            step = episodes[i].steps[-1]
            step.action = players[i][1].act(step.admissible)
            step.response_ids = np.array(codec.answer_ids(step.action), np.int32)
            step.behaviour_logp = np.zeros(len(step.response_ids), np.float32)
            step.action_span = (0, len(step.response_ids) - 1)
            actions.append(step.action)
        pool.step(live, actions)
        still = []
        for i, seen in zip(live, pool.receive(live), strict=True):
            episode, step = episodes[i], episodes[i].steps[-1]
            episode.failure, episode.won, step.after = seen.failure, seen.won, seen.text
            players[i][0].transition(step.action, seen.text, step.admissible)
            histories[i].append((step.before, step.action))
            if not seen.done and len(episode.steps) < max_steps:
                _prompt(episode, codec, seen, histories[i])
                still.append(i)
        live = still
    return [episode for episode in episodes if episode.failure is None]


def _prompt(episode: Episode, codec: Codec, seen, history) -> None:
    if history:
        text = codec.prompt.next(episode.task.instruction, history, seen.text, seen.admissible)
    else:
        text = codec.prompt.first(episode.task.instruction, seen.text, seen.admissible)
    blank = np.zeros(0, np.int32)
    ids = np.array(codec.prompt_ids(text, episode.steps[-1].response_ids if history else None), np.int32)
    episode.steps.append(Step(ids, blank, blank, None, None, (0, 0), seen.text, seen.admissible))

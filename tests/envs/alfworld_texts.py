"""Small ALFWorld episodes in words, for tests: what the adapter and the rubric make of them."""

from functools import cache

import numpy as np

from trca_jax.envs.alfworld import Alfworld
from trca_jax.envs.base import Task
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import encode_bindings, encode_facts

BENCHMARK = Alfworld()


def first(instruction: str, *receptacles: str) -> str:
    """A first observation: the room and the task."""
    *most, last = (f"a {name}" for name in receptacles)
    room = f"{', '.join(most)}, and {last}" if most else last
    return (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "
        f"{room}.\n\nYour task is to: {instruction}"
    )


def task(instruction: str) -> Task:
    return Task("t", "alfworld", instruction, "", None)


def follow(instruction, steps, room=("table 1",)):
    """The adapter after an episode, and the facts of its transitions. steps: (action, feedback) pairs."""
    adapter = BENCHMARK.adapter(task(instruction), first(instruction, *room))
    return adapter, [adapter.transition(action, feedback, ()) for action, feedback in steps]


@cache
def judge() -> Judge:
    return Judge(BENCHMARK.library)


def judgements(rows, instructions):
    """bool [R,T,J] and bound [R,J] of facts per rollout; T is fixed so that nothing is compiled again."""
    symbols = judge().symbols()
    facts = encode_facts(rows, BENCHMARK.library, symbols, 30)
    bindings = encode_bindings([BENCHMARK.bind(task(text)) for text in instructions], BENCHMARK.library, symbols)
    return tuple(map(np.asarray, judge()(facts, bindings)))


def fired(instruction, steps, room=("table 1",)) -> list[set[str]]:
    """The items that fire, a set for each step."""
    _, rows = follow(instruction, steps, room)
    judged, _ = judgements([rows], [instruction])
    return [{judge().items[j] for j in np.flatnonzero(row)} for row in judged[0, : len(rows)]]


def bound(instruction) -> set[str]:
    _, known = judgements([[]], [instruction])
    return {judge().items[j] for j in np.flatnonzero(known[0])}

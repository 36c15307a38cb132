"""What slots ask for together, before they step, and what becomes of the deadline."""

import time
from functools import partial

import pytest

from trca_jax.envs.base import Observation, Task
from trca_jax.envs.pool import EnvPool


class Asker:
    """Answers with what was prefetched for it. Of the first action that says so, prefetch naps, hangs or raises."""

    def __init__(self, nap_s: float = 0.0):
        self.nap_s, self.ready = nap_s, "nothing"

    def reset(self, task):
        return Observation("")

    @staticmethod
    def prefetch(steps):
        for env, action in steps:
            env.ready = f"{action} of {len(steps)}"
            if action == "raise":
                raise RuntimeError("on purpose")
            if action == "hang":
                time.sleep(600)
        time.sleep(steps[0][0].nap_s)

    def step(self, action):
        time.sleep(self.nap_s if action == "nap" else 0)
        ready, self.ready = self.ready, "nothing"
        return Observation(ready)


def started(pool):
    pool.reset(range(pool.slots), [Task(str(slot), "toy", "", "", None) for slot in range(pool.slots)])
    pool.receive(range(pool.slots))
    return pool


def step(pool, *actions):
    pool.step(range(len(actions)), actions)
    return [o.failure or o.text for o in pool.receive(range(len(actions)))]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_slots_of_a_process_and_a_call_ask_together(workers):
    with EnvPool(Asker, slots=4, workers=workers) as pool:
        of = 2 if workers else 4
        assert step(started(pool), *"abcd") == [f"{letter} of {of}" for letter in "abcd"]
        pool.reset([0], [Task("x", "toy", "", "", None)])
        pool.step([1], ["alone"])
        assert [o.text for o in pool.receive([1, 0])] == ["alone of 1", ""]
        # What raises is no answer to anybody: every slot steps without.
        assert step(pool, "raise", "b", "c")[0::2] == [f"raise of {min(of, 3)}", "c of 1" if workers else "nothing"]


def test_the_deadline_is_for_the_prefetch_and_then_for_each_slot():
    with EnvPool(partial(Asker, 0.7), slots=2, workers=1) as pool:
        started(pool)
        pool._workers[0].deadline_s = 1.2  # now that the worker is up, which takes longer on a busy machine
        assert step(pool, "nap", "nap") == ["nap of 2"] * 2  # 2.1 s together
        pool.step([0], ["x"])
        assert pool.ready([0], 0.2) == [] and pool.ready([0], 10) == [0]
        pool.receive([0])
        assert step(pool, "x", "hang") == ["worker 0 passed its deadline of 1.2 s"] * 2

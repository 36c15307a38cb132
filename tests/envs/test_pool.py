"""The pool with toy environments: order, failures, replacements, and what becomes of its processes."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from trca_jax.envs.base import Observation, Task
from trca_jax.envs.pool import EnvPool


class Toy:
    """Counts its steps. Tells its process, and does what some actions say."""

    def __init__(self, large: int = 0):
        self.large = large

    def reset(self, task):
        if task.payload == "bad":
            raise ValueError("bad task")
        self.task, self.steps = task, 0
        return Observation(f"{task.id} {os.getpid()}" + "x" * self.large)

    def step(self, action):
        self.steps += 1
        if action == "raise":
            raise RuntimeError("on purpose")
        if action == "sleep":
            time.sleep(600)
        if action == "nap":
            time.sleep(0.6)
        if action == "rest":
            time.sleep(2)
        if action == "modules":
            return Observation(" ".join(sys.modules))
        return Observation(f"{self.task.id} {action} {self.steps}" + "x" * self.large, ("a", "b"), 0.5, True, True)


def tasks(*ids, payload=None):
    return [Task(str(i), "toy", "", "", payload) for i in ids]


def start(pool, slots):
    pool.reset(slots, tasks(*slots))
    return [int(o.text.split()[1]) for o in pool.receive(slots)]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return open(f"/proc/{pid}/stat").read().split()[2] != "Z"


def gone_within(pids, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(map(alive, pids)):
        time.sleep(0.02)
    return not any(map(alive, pids))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_answers_come_back_to_their_slots_in_the_order_asked_for(workers):
    with EnvPool(Toy, slots=7, workers=workers) as pool:
        pids = start(pool, list(range(7)))
        # Contiguous blocks: 0-1, 2-3, 4-6 with three workers.
        assert len(set(pids)) == max(workers, 1)
        assert [pids.index(p) for p in pids] == ([0, 0, 2, 2, 4, 4, 4] if workers == 3 else [0] * 7)
        assert (os.getpid() in pids) == (workers == 0)
        pool.step([6, 0, 3], ["six", "zero", "three"])
        pool.step([1], ["one"])  # a second call before the first is received
        assert [o.text for o in pool.receive([3, 1])] == ["3 three 1", "1 one 1"]
        pool.step([3], ["again"])
        assert [o.text for o in pool.receive([0, 3, 6])] == ["0 zero 1", "3 again 2", "6 six 1"]
        pool.step([2], ["x"])
        assert pool.receive([2]) == [Observation("2 x 1", ("a", "b"), 0.5, True, True)]


def test_what_is_in_can_be_taken_before_the_rest():
    """Slot 1 rests before slot 2 in the same worker; what is done before it, or elsewhere, is not held back."""
    with EnvPool(Toy, slots=6, workers=2) as pool:
        start(pool, list(range(6)))
        pool.step([0, 1, 2, 3], ["zero", "rest", "two", "three"])
        begin = time.monotonic()
        assert pool.ready([3, 2, 1, 0], 0.8) == [3, 0]
        assert 0.7 < time.monotonic() - begin < 1.6
        assert [o.text for o in pool.receive([3])] == ["3 three 1"]
        pool.step([3], ["again"])
        assert pool.ready([3], 10) == [3] and time.monotonic() - begin < 1.8
        assert pool.ready([0, 1, 2], 10) == [0, 1, 2]
        assert 1.8 < time.monotonic() - begin < 6
        assert [o.text for o in pool.receive([0, 1, 2])] == ["0 zero 1", "1 rest 1", "2 two 1"]


def test_looking_does_not_end_a_slow_worker_before_its_deadline():
    with EnvPool(Toy, slots=2, workers=2, deadline_s=1.5) as pool:
        start(pool, [0, 1])
        pool.step([0, 1], ["sleep", "x"])
        begin = time.monotonic()
        assert pool.ready([0, 1], 0.2) == [1]
        assert pool.ready([0], 10) == [0]  # its failure is an answer
        assert 1.4 < time.monotonic() - begin < 4
        assert pool.receive([0])[0].failure == "worker 0 passed its deadline of 1.5 s"


def test_a_killed_worker_fails_its_episodes_and_is_replaced():
    with EnvPool(Toy, slots=4, workers=2) as pool:
        pids = start(pool, [0, 1, 2, 3])
        os.kill(pids[2], signal.SIGKILL)
        pool.step([0, 1, 2], ["a", "b", "c"])
        answers = pool.receive([0, 1, 2])
        assert [o.failure for o in answers] == [None, None, "worker 1 died (exit -9)"]
        assert answers[2] == Observation("", done=True, failure="worker 1 died (exit -9)")
        # Slot 3 lost its episode too, though it was not asked; both stay failed until their next reset.
        pool.step([2, 3, 0], ["d", "e", "f"])
        assert [o.failure for o in pool.receive([2, 3, 0])] == ["worker 1 died (exit -9)"] * 2 + [None]
        pool.reset([2], tasks("new"))
        (fresh,) = pool.receive([2])
        assert fresh.failure is None and fresh.text.split()[0] == "new" and int(fresh.text.split()[1]) not in pids
        pool.step([2, 3, 0], ["g", "h", "i"])
        assert [o.text for o in pool.receive([2, 3, 0])] == ["new g 1", "", "0 i 3"]


def test_a_worker_that_dies_with_two_requests_out_fails_both():
    with EnvPool(Toy, slots=2, workers=1, deadline_s=30) as pool:
        (pid, _) = start(pool, [0, 1])
        pool.step([0], ["sleep"])
        pool.step([1], ["x"])
        os.kill(pid, signal.SIGKILL)
        assert [o.failure for o in pool.receive([1, 0])] == ["worker 0 died (exit -9)"] * 2
        assert start(pool, [0, 1])[0] != pid


def test_a_worker_past_its_deadline_is_replaced():
    with EnvPool(Toy, slots=4, workers=2, deadline_s=2) as pool:
        pids = start(pool, [0, 1, 2, 3])
        begin = time.monotonic()
        pool.step([0, 1, 2, 3], ["sleep", "x", "y", "z"])
        assert [o.text for o in pool.receive([2, 3])] == ["2 y 1", "3 z 1"]
        assert [o.failure for o in pool.receive([0, 1])] == ["worker 0 passed its deadline of 2 s"] * 2
        assert 1.9 < time.monotonic() - begin < 6
        assert gone_within([pids[0]], 1) and alive(pids[2])
        assert start(pool, [0])[0] != pids[0]


def test_the_deadline_is_for_one_slot_not_for_all_of_a_call():
    with EnvPool(Toy, slots=4, workers=1, deadline_s=2) as pool:
        start(pool, [0, 1, 2, 3])
        pool.step([0, 1], ["nap", "nap"])
        pool.step([2, 3], ["nap", "nap"])  # 2.4 s together
        assert [o.failure for o in pool.receive([0, 1, 2, 3])] == [None] * 4
        # What was answered before a slot hangs is kept.
        pool.step([0, 1], ["nap", "sleep"])
        kept, lost = pool.receive([0, 1])
        assert kept.text == "0 nap 2" and lost.failure == "worker 0 passed its deadline of 2 s"


def test_a_late_reader_is_no_late_worker():
    with EnvPool(Toy, slots=1, workers=1, deadline_s=2) as pool:
        start(pool, [0])
        pool.step([0], ["x"])
        time.sleep(2.3)
        assert pool.receive([0])[0].text == "0 x 1"


@pytest.mark.parametrize("workers", [0, 1])
def test_an_exception_fails_one_episode_only(workers):
    with EnvPool(Toy, slots=2, workers=workers) as pool:
        pids = start(pool, [0, 1])
        pool.step([0, 1], ["raise", "x"])
        failed, other = pool.receive([0, 1])
        assert failed == Observation("", done=True, failure="RuntimeError: on purpose")
        assert other.text == "1 x 1" and other.failure is None
        pool.step([0], ["x"])
        assert pool.receive([0])[0].failure == "RuntimeError: on purpose"
        assert start(pool, [0]) == pids[:1]  # the same worker goes on
        pool.reset([1], tasks("t", payload="bad"))
        assert pool.receive([1])[0].failure == "ValueError: bad task"


def test_an_environment_that_cannot_be_made_says_why():
    with EnvPool(partial(Toy, colour="red"), slots=1) as pool:
        pool.reset([0], tasks(0))
        assert "colour" in pool.receive([0])[0].failure


def test_large_messages_both_ways_do_not_block():
    big = 300_000
    with EnvPool(partial(Toy, large=big), slots=4, workers=1) as pool:
        pool.reset([0, 1], tasks(0, 1, payload="y" * big))
        pool.reset([2, 3], tasks(2, 3, payload="y" * big))  # while the first answers wait to be read
        assert [len(o.text) > big for o in pool.receive([0, 1, 2, 3])] == [True] * 4


def test_workers_never_import_jax_and_ignore_ctrl_c():
    with EnvPool(Toy, slots=1, workers=1) as pool:
        (pid,) = start(pool, [0])
        os.kill(pid, signal.SIGINT)
        pool.step([0], ["modules"])
        (seen,) = pool.receive([0])
        assert seen.failure is None
        roots = {name.split(".")[0] for name in seen.text.split()}
        assert "trca_jax" in roots and not roots & {"jax", "jaxlib", "flax", "torch", "transformers"}


def test_close_ends_every_process_and_may_be_repeated():
    pool = EnvPool(Toy, slots=3, workers=3)
    pids = start(pool, [0, 1, 2])
    pool.step([1], ["sleep"])
    pool.close()
    pool.close()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)  # not even zombies
    with pytest.raises(ValueError, match="open pool"):
        pool.step([0], ["x"])


def test_workers_die_with_a_parent_that_is_killed():
    code = """
import sys, time
sys.path.insert(0, {here!r})
from test_pool import EnvPool, Toy, start
pool = EnvPool(Toy, slots=2, workers=2)
print(*start(pool, [0, 1]), flush=True)
pool.step([1], ["sleep"])  # one idle, one in the middle of a step
time.sleep(600)
"""
    code = code.format(here=os.path.dirname(__file__))
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    time.sleep(0.2)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone_within(pids, 5)


def test_wrong_calls_are_one_clear_error():
    with EnvPool(Toy, slots=2, workers=0) as pool:
        start(pool, [0])
        for call, message in (
            (lambda: pool.receive([1]), "asked nothing"),
            (lambda: pool.ready([1], 1), "asked nothing"),
            (lambda: pool.step([0, 1], ["x"]), "one for each slot"),
            (lambda: pool.step([0, 0], ["x", "y"]), "once"),
            (lambda: pool.step([2], ["x"]), "no slots"),
        ):
            with pytest.raises(ValueError, match=message):
                call()
        pool.step([0], ["x"])
        with pytest.raises(ValueError, match="not been received"):
            pool.step([0], ["y"])
    for wrong in ({"slots": 0}, {"slots": 1, "workers": -1}, {"slots": 1, "deadline_s": 0}):
        with pytest.raises(ValueError, match="no pool"):
            EnvPool(Toy, **wrong)

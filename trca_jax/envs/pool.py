"""Many environment slots in a few worker processes, played in lock step or not, and the run outlives a worker.

Slots are dealt to workers in contiguous blocks, so the members of a rollout group sit in one process and share what it
has loaded. `reset` and `step` only send; `ready` waits for a while, `receive` for all. A worker that dies, or spends
more than the deadline on one slot, or on what slots prefetch together, is replaced; its slots answer
`Observation(failure=...)` until their next reset.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue

from trca_jax.envs.base import Env, Observation, Task

Request = tuple[str, int, Task | str]  # "reset" or "step", slot, task or action
Answer = tuple[int, Observation]  # slot and what it answered


class EnvPool:
    """`slots` environments in `workers` processes (0: in this process, for debugging). A context manager.

    make_env: picklable, from an importable module; makes the environment of one slot, in the worker. deadline_s: how
    many seconds one slot may take over a reset or step, and the slots of a call over one prefetch (`envs.base.Env`).
    Workers are fresh interpreters that never see this process's memory or main script, so JAX may be up or not. Raises
    ValueError on a size that is none.
    """

    def __init__(self, make_env: Callable[[], Env], *, slots: int, workers: int = 1, deadline_s: float = 60.0) -> None:
        if slots < 1 or workers < 0 or not deadline_s > 0:
            raise ValueError(
                f"no pool of {slots} slots in {workers} workers with a deadline of {deadline_s} s; "
                "expected slots >= 1, workers >= 0 and a deadline above 0"
            )
        self.slots = slots
        kind = partial(_Process, deadline_s=deadline_s) if workers else _Inline
        parts = min(max(workers, 1), slots)
        blocks = [range(slots * part // parts, slots * (part + 1) // parts) for part in range(parts)]
        self._workers = [kind(name, make_env, block) for name, block in enumerate(blocks)]
        self._worker_of = {slot: worker for worker in self._workers for slot in worker.block}
        self._broken: dict[int, str] = {}  # slot -> why it failed, until its next reset
        self._pending: dict[int, Observation | None] = {}  # the slots that were asked; None until the answer is in

    def reset(self, slots: Sequence[int], tasks: Sequence[Task]) -> None:
        """Starts an episode of `tasks[i]` in `slots[i]`; the first observations come with `receive`."""
        self._send("reset", slots, tasks)

    def step(self, slots: Sequence[int], actions: Sequence[str]) -> None:
        """Plays `actions[i]` in `slots[i]`; the observations come with `receive`."""
        self._send("step", slots, actions)

    def receive(self, slots: Sequence[int]) -> list[Observation]:
        """The answers of these slots, in the order given, waiting for those that are still out.

        Raises ValueError for a slot that nothing was asked of.
        """
        self.ready(slots, math.inf)
        return [self._pending.pop(slot) for slot in slots]

    def ready(self, slots: Sequence[int], patience_s: float) -> list[int]:
        """Those of the slots whose answers are in, in the order given, after at most patience_s of waiting for all.

        A slot behind a slow one in the same worker is late with it. Raises ValueError as `receive` does.
        """
        if idle := [slot for slot in slots if slot not in self._pending]:
            raise ValueError(f"slots {idle} were asked nothing; call reset or step before receive")
        end = time.monotonic() + patience_s
        for worker in self._workers:
            while any(self._pending[s] is None and self._worker_of[s] is worker for s in slots):
                if not self._take(worker, max(end - time.monotonic(), 0.0)):
                    break
        return [slot for slot in slots if self._pending[slot] is not None]

    def close(self) -> None:
        """Ends the workers; may be called again."""
        for worker in self._workers:
            worker.stop()
        self._workers, self._worker_of, self._pending = [], {}, {}

    def __enter__(self) -> EnvPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, verb: str, slots: Sequence[int], what: Sequence[Task] | Sequence[str]) -> None:
        if len(slots) != len(what) or len(set(slots)) != len(slots):
            raise ValueError(f"{verb} of slots {list(slots)} with {len(what)} values; expected one for each slot, once")
        if unknown := [slot for slot in slots if slot not in self._worker_of]:
            raise ValueError(f"no slots {unknown} in this pool; expected 0 to {self.slots - 1} of an open pool")
        if busy := [slot for slot in slots if slot in self._pending]:
            raise ValueError(f"slots {busy} have not been received since they were last asked; call receive first")
        batches: dict[_Process | _Inline, list[Request]] = {}
        for slot, value in zip(slots, what, strict=True):
            if verb == "reset":
                self._broken.pop(slot, None)
            self._pending[slot] = self._failed(slot) if slot in self._broken else None
            if slot not in self._broken:
                batches.setdefault(self._worker_of[slot], []).append((verb, slot, value))
        for worker, batch in batches.items():
            worker.ask(batch)

    def _take(self, worker: _Process | _Inline, patience_s: float) -> bool:
        """Waits for a sign of a worker, or for its end; False if there was neither in time."""
        try:
            answers = worker.answer(patience_s)
        except _WorkerEnded as ended:
            for slot in worker.block:  # the episodes of every slot are lost, those not asked now too
                self._broken[slot] = str(ended)
                if slot in self._pending and self._pending[slot] is None:
                    self._pending[slot] = self._failed(slot)
            worker.replace()
            return True
        for slot, observation in answers or ():
            self._pending[slot] = observation
            if observation.failure is not None:
                self._broken[slot] = observation.failure
        return answers is not None

    def _failed(self, slot: int) -> Observation:
        return Observation("", done=True, failure=self._broken[slot])


class _WorkerEnded(Exception):
    """A worker died or passed its deadline."""


class _Process:
    """One worker process and the requests it has not answered."""

    def __init__(self, name: int, make_env: Callable[[], Env], block: range, deadline_s: float) -> None:
        self.name, self.make_env, self.block, self.deadline_s = name, pickle.dumps(make_env), block, deadline_s
        self.start()

    def start(self) -> None:
        self.pipe, end = Pipe()
        # A plain interpreter: multiprocessing's spawn would run the main script's imports, JAX among them, once more.
        code = f"from trca_jax.envs.pool import serve; serve({end.fileno()})"
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[end.fileno()], env={**os.environ, "PYTHONPATH": paths}
        )
        end.close()  # so that the worker's death is an end of file here
        self.since: list[float] = []  # for each unanswered request, since when it has made no headway
        with suppress(OSError):
            self.pipe.send_bytes(self.make_env)

    def ask(self, batch: list[Request]) -> None:
        self.since.append(time.monotonic())
        with suppress(OSError):  # it is dead; answer() will say so
            self.pipe.send(batch)

    def answer(self, patience_s: float) -> list[Answer] | None:
        """Some answers, or none yet where only a prefetch is done; None if patience_s passes first."""
        left = max(self.since[0] + self.deadline_s - time.monotonic(), 0)
        try:
            if not self.pipe.poll(min(left, patience_s)):
                if patience_s < left:
                    return None
                raise _WorkerEnded(f"worker {self.name} passed its deadline of {self.deadline_s:g} s")
            last, answers = self.pipe.recv()
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            raise _WorkerEnded(f"worker {self.name} died (exit {self.process.returncode})") from None
        if last:
            self.since.pop(0)
        if self.since:
            self.since[0] = time.monotonic()  # the next slot, or the next request, begins now
        return answers

    def replace(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        self.pipe.close()  # the worker ends at the end of file
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.5)
        self.process.kill()
        self.process.wait()


class _Inline:
    """The worker's work done in this process: no deadline, and a crash is a crash."""

    def __init__(self, name: int, make_env: Callable[[], Env], block: range) -> None:
        self.block, self.envs, self.make_env, self.answers = block, {}, make_env, []

    def ask(self, batch: list[Request]) -> None:
        _prefetch(self.envs, batch)
        self.answers.append([_play(self.envs, self.make_env, *request) for request in batch])

    def answer(self, patience_s: float) -> list[Answer]:
        return self.answers.pop(0)

    def stop(self) -> None:
        self.envs.clear()


def serve(descriptor: int) -> None:
    """A worker's whole life: answers batches until the other end of the pipe is gone, by close or by death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    pipe, inbox, envs, lock = Connection(descriptor), SimpleQueue(), {}, threading.Lock()
    answers: list[Answer] = []

    def read() -> None:
        try:
            while True:
                inbox.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)

    def send(last: bool) -> None:
        with suppress(OSError):  # the parent is gone; the reader notices
            pipe.send((last, answers))
        answers.clear()

    def report() -> None:
        while True:
            time.sleep(0.05)
            with lock:
                if answers:
                    send(False)

    # Reading in a thread: the parent never waits to be read, and its death ends even an environment that hangs.
    threading.Thread(target=read, daemon=True).start()
    # Reporting in a thread: what is done does not wait for a slow slot behind it, and shows that the batch gets on.
    threading.Thread(target=report, daemon=True).start()
    make_env = inbox.get()
    while True:
        batch = pickle.loads(inbox.get())
        if _prefetch(envs, batch):
            with lock:
                send(False)  # the first slot begins now
        for done, request in enumerate(batch, start=1):
            answer = _play(envs, lambda: pickle.loads(make_env)(), *request)
            with lock:
                answers.append(answer)
                if done == len(batch):
                    send(True)


def _prefetch(envs: dict[int, Env], batch: list[Request]) -> bool:
    """Lets the environments that are about to step ask together for what they need; whether they do such a thing."""
    steps = [(envs[slot], value) for verb, slot, value in batch if verb == "step" and slot in envs]
    prefetch = getattr(steps[0][0], "prefetch", None) if steps else None
    if prefetch is None:
        return False
    with suppress(Exception):  # each step meets it again, and fails or not by itself
        prefetch(steps)
    return True


def _play(envs: dict[int, Env], make_env: Callable[[], Env], verb: str, slot: int, value: Task | str) -> Answer:
    try:
        if slot not in envs:
            envs[slot] = make_env()
        return slot, envs[slot].reset(value) if verb == "reset" else envs[slot].step(value)
    except Exception as error:  # whatever an environment raises ends its episode, not the run
        envs.pop(slot, None)
        return slot, Observation("", done=True, failure=f"{type(error).__name__}: {error}")

"""Ctrl-C, heard at moments at which nothing is lost."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import jax

from trca_jax.rollout.processes import gather


class Stopped(Exception):
    """The user asked to stop; everything up to the last full iteration is saved."""


@contextmanager
def interrupts():
    """Turns the first Ctrl-C into a `Stopped` at the next call of the yielded check; the second one acts at once.

    The other yielded function is for moments at which every process calls it: then all stop if one was asked. Among
    several processes check does nothing, as those that go on would wait for the one that stopped.
    """
    asked = False

    def handler(signum, frame):
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def check():
        if asked and jax.process_count() == 1:
            raise Stopped

    def agree():
        if any(gather(b"stop" if asked else b"")):
            raise Stopped

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield check, agree
    finally:
        signal.signal(signal.SIGINT, before)

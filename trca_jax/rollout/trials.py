"""Reflexion's trials: failed tasks are played again with what was noted about the failures before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import jax

from trca_jax.agents.endpoint import ChatError
from trca_jax.agents.reflexion import ask_reflection, read_reflection, remind
from trca_jax.envs.base import Task
from trca_jax.policy.decoding import Decoding
from trca_jax.rollout.episode import Episode


class Player(Protocol):
    """What plays episodes and can be asked in words as well: a `Collector`, or `Conversations` with an endpoint."""

    def __call__(
        self, params, tasks: Sequence[Task], groups: Sequence[int], key: jax.Array,
        on_turn: Callable[[int, int], None] = ..., *, first: int = ..., decoding: Decoding,
    ) -> list[Episode]: ...  # fmt: skip

    def fits(self, text: str) -> bool: ...

    def write(
        self, params, texts: Sequence[str], key: jax.Array, *, first: int = ..., decoding: Decoding
    ) -> Sequence[str | ChatError]: ...


class Trials:
    """Plays each task up to `count` times, until it is solved. An episode is that of its last trial.

    After a failed trial the player notes what it would do differently; the latest notes stand behind the instruction in
    the next trial. Infrastructure that fails ends a task's trials. The first trial is the one that the player would
    have played without any others. role: as `Benchmark.role`. Source: spec/methods.md section 9.4.
    """

    def __init__(self, player: Player, count: int, role: str):
        self._player, self._count, self._role = player, count, role

    def __call__(
        self, params, tasks: Sequence[Task], groups: Sequence[int], key: jax.Array,
        on_turn: Callable[[int, int], None] = lambda turn, live: None, *, first: int = 0, decoding: Decoding,
    ) -> list[Episode]:  # fmt: skip
        episodes = self._player(params, tasks, groups, key, on_turn, first=first, decoding=decoding)
        for trial in range(1, self._count):
            failed = [i for i, episode in enumerate(episodes) if not episode.won and episode.failure is None]
            if not failed:
                break
            own = jax.random.fold_in(key, trial)
            asked = [self._question(episodes[i]) for i in failed]
            noted = self._player.write(params, asked, jax.random.fold_in(own, 1), first=first, decoding=decoding)
            again = []
            for i, note in zip(failed, noted, strict=True):
                if isinstance(note, ChatError):
                    episodes[i].failure = str(note)
                else:
                    episodes[i].reflections += (read_reflection(note),)
                    again.append(i)
            told = [replace(t := tasks[i], instruction=remind(t.instruction, episodes[i].reflections)) for i in again]
            where = [groups[i] for i in again]
            played = self._player(params, told, where, own, on_turn, first=first, decoding=decoding)
            for i, episode in zip(again, played, strict=True):
                episode.task, episode.reflections = tasks[i], episodes[i].reflections
                episodes[i] = episode
        return episodes

    def _question(self, episode: Episode) -> str:
        """What is asked after a failure, with as many of the last steps as the player can take."""
        turns = [(step.before, step.answer or step.action or "") for step in episode.steps]
        last = episode.steps[-1].after if episode.steps else episode.first_observation
        ask = lambda kept: ask_reflection(self._role, episode.task.instruction, kept, last, episode.reflections)  # noqa: E731
        questions = (ask(turns[skipped:]) for skipped in range(len(turns)))
        return next((text for text in questions if self._player.fits(text)), ask(()))

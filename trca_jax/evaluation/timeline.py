"""Episodes as the report's viewer reads them: every step with what fired, what it earned and the context it was in."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from trca_jax.agents.parse import thought
from trca_jax.envs.base import Benchmark
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.judge import transitions

LONGEST = 2000  # characters of one text; the rest of a longer one is counted and left out


@dataclass(frozen=True)
class Played:
    """One file of judged episodes. key: its name, part of the page's addresses. label: what it is. batch: their
    CreditBatch. credit: their Credit, None where it cannot be known. fields: those that its contexts are made of, none
    where an observation is one. rubric: whether the credit comes from it."""

    key: str
    label: str
    episodes: Sequence[Episode]
    batch: Any
    credit: Any
    fields: Sequence[str]
    rubric: bool

    def groups(self) -> dict[int, list[int]]:
        """The rollouts of each group."""
        found = defaultdict(list)
        for r, episode in enumerate(self.episodes):
            found[episode.group].append(r)
        return dict(sorted(found.items()))


def packed(content: Any) -> str:
    """JSON that can stand inside a script of a page: nothing in it can end that."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class Texts(list):
    """All different texts of a page; `add` gives the place of one, −1 for None."""

    def __init__(self):
        self._places: dict[str, int] = {}

    def add(self, text: str | None) -> int:
        if text is None:
            return -1
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"
        if text not in self._places:
            self._places[text] = len(self)
            self.append(text)
        return self._places[text]

    def drop(self, first: int) -> None:
        """Takes the texts from this place on out again."""
        for text in self[first:]:
            del self._places[text]
        del self[first:]


def timeline(files: Sequence[Played], benchmark: Benchmark, budget: int) -> dict[str, Any]:
    """The groups that fit into so many bytes: texts, and for each file key, label, credited, rubric, left_out
    (groups) and groups.

    A group: number, instruction, kind and its rollouts, whole. A rollout: end (won, cut off, ended, failed), failure,
    episode (A_E), first and steps. A step: places of its action, answer (of the environment) and thought (for a step
    without an action all that was said) in texts; its context's number, the place of what that is, and the items that
    fired; r_F, r_B, r_env, return, A_S and advantage (none of them if not credited). Groups are taken from each file
    and task type in turn, and there of those with both outcomes, those all lost and those all won.
    """
    texts, size = Texts(), 0
    taken: list[dict[int, dict]] = [{} for _ in files]
    for f, number in _in_turn(_by_outcome(files)):
        before = len(texts)
        record = _group(files[f], number, benchmark, texts)
        cost = len(packed(record)) + len(packed(texts[before:]))
        if size + cost <= budget:
            size += cost
            taken[f][number] = record
        else:
            texts.drop(before)
    return {
        "texts": texts,
        "files": [
            {
                "key": file.key, "label": file.label, "credited": file.credit is not None, "rubric": file.rubric,
                "left_out": len(file.groups()) - len(own), "groups": [own[number] for number in sorted(own)],
            }
            for file, own in zip(files, taken, strict=True)
        ],
    }  # fmt: skip


def _by_outcome(files: Sequence[Played]) -> list[list[tuple[int, int]]]:
    """(file, group) for each file and task type: those with both outcomes, all lost and all won in turn."""
    found: dict[tuple[int, str], list[list]] = defaultdict(lambda: [[], [], []])
    for f, file in enumerate(files):
        for number, rollouts in file.groups().items():
            outcomes = {file.episodes[r].won for r in rollouts}
            place = 0 if len(outcomes) == 2 else 1 + outcomes.pop()
            found[f, file.episodes[rollouts[0]].task.kind][place].append((f, number))
    return [list(_in_turn(parts)) for parts in found.values()]


def _in_turn(parts: Iterable[Sequence]) -> Iterator:
    """One of each, until all are empty."""
    return (x for x in chain.from_iterable(zip_longest(*parts)) if x is not None)


def _group(file: Played, number: int, benchmark: Benchmark, texts: Texts) -> dict[str, Any]:
    rollouts = file.groups()[number]
    task = file.episodes[rollouts[0]].task
    return {
        "number": number, "instruction": task.instruction, "kind": task.kind,
        "rollouts": [_rollout(file, r, benchmark, texts) for r in rollouts],
    }  # fmt: skip


def _rollout(file: Played, r: int, benchmark: Benchmark, texts: Texts) -> dict[str, Any]:
    episode, batch, credit = file.episodes[r], file.batch, file.credit
    known = transitions(episode, benchmark)[1] if file.fields else []
    steps = []
    for t, step in enumerate(episode.steps[: batch.length[r]]):
        context = " · ".join(f"{name} {_plain(known[t][name])}" for name in file.fields) if known else None
        said = thought(step.answer) if step.action is not None else step.answer
        fired = (batch.judgement[r, t] * batch.item_mask[r]).nonzero()[0].tolist()
        places = [texts.add(text) for text in (step.action, step.after, said or None)]
        numbers = ()
        if credit is not None:
            figures = (credit.foundational, credit.breakthrough, batch.r_env, credit.returns, credit.step)
            numbers = [_number(array[r, t]) for array in (*figures, credit.advantage)]
        steps.append([*places, int(batch.context[r, t]), texts.add(context), fired, *numbers])
    end = "won" if episode.won else "cut off" if episode.truncated else "ended"
    return {
        "end": "failed" if episode.failure else end, "failure": episode.failure,
        "episode": _number(credit.episode[r]) if credit is not None else None,
        "first": texts.add(episode.first_observation), "steps": steps,
    }  # fmt: skip


def _plain(value: Any) -> str:
    """A value of a context field in words."""
    if isinstance(value, tuple | frozenset):
        members = map(_plain, value) if isinstance(value, tuple) else sorted(map(_plain, value))
        return ", ".join(members) or "none"
    return "unknown" if value is None else "…" if value is ... else str(value)


def _number(value: Any) -> float | None:
    value = round(float(value), 4)
    return value if math.isfinite(value) else None

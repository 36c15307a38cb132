"""What a text world is to the rest of the library: small protocols and records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from trca_jax.rubrics.schema import Declaration, Library


@dataclass(frozen=True)
class Task:
    """One problem to solve, equal for every rollout of its group.

    id: unique and stable across machines. benchmark: the name in the registry. instruction: what the agent is told to
    do. kind: the task type that results are reported by. payload: what the engine needs to load the task; it may hold
    hidden state, so it is handed to `Env.reset` and to nothing else.
    """

    id: str
    benchmark: str
    instruction: str
    kind: str
    payload: Any = field(repr=False)


@dataclass(frozen=True)
class TaskSet:
    """The tasks of one split, sorted by id, and what to write into the record of a run.

    source: where they came from, in words. sha256: over ids and contents: equal where the tasks are equal. facts: what
    else results depend on, of the world that they are played in; plain values, as JSON knows them.
    """

    tasks: tuple[Task, ...]
    source: str
    split: str
    sha256: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __str__(self) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(task.kind for task in self.tasks).items()))
        return f"{len(self.tasks)} tasks, split {self.split}, from {self.source} ({kinds}; sha256 {self.sha256[:12]})"


def merge(parts: Sequence[TaskSet]) -> TaskSet:
    """Several splits as one set of tasks, in the order given."""
    digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()
    tasks = tuple(task for part in parts for task in part)
    return TaskSet(tasks, parts[0].source, "+".join(part.split for part in parts), digest, parts[0].facts)


@dataclass(frozen=True)
class Example:
    """A short episode of a benchmark in its own texts, worked by hand, for prompts that show one.

    turns: (observation, thought, action) each; the last action solves the task.
    """

    instruction: str
    turns: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Observation:
    """What the environment answers to a reset or a step.

    text: the feedback. admissible: the commands that the environment offers now. reward: of this step alone.
    done: nothing more can be done. won: the task is solved; the only meaning of success.
    failure: why the infrastructure (not the agent) failed; such an episode leaves the loss and the statistics.
    """

    text: str
    admissible: tuple[str, ...] = ()
    reward: float = 0.0
    done: bool = False
    won: bool = False
    failure: str | None = None


class Env(Protocol):
    """One environment slot. Lives in one process; never shared between episodes that run at the same time.

    A class whose steps wait for something outside, such as a server, may have a static method `prefetch(steps)` too.
    steps: (environment, action) of all slots of a process that are about to play. It asks for all of it at once and
    keeps each answer in its environment; a step must do without it where prefetch raised or was never called.
    """

    def reset(self, task: Task) -> Observation: ...

    def step(self, action: str) -> Observation: ...


class Adapter(Protocol):
    """Reads one episode's observable text and says what is known. Unknown is None, and no text raises."""

    def context(self) -> Mapping[str, Hashable]:
        """What is known before the next action, field by field; `Library.context` names those that make a context."""

    def transition(self, action: str | None, observation: str, admissible: Sequence[str]) -> Mapping[str, Any]:
        """Facts of one transition. action: the parsed action, None if the output could not be parsed.
        observation: the text that answered. admissible: the commands offered *before* the action."""


class Player(Protocol):
    """A scripted player that knows what its adapter knows."""

    def act(self, admissible: Sequence[str]) -> str: ...


class Benchmark(Protocol):
    """A benchmark: where its tasks come from, how they are played, bound and read. Picklable: workers receive it."""

    name: str
    declaration: Declaration
    library: Library
    offers: frozenset[str]  # what it has for learning alone: "gold answers", "golden documents", "curriculum"
    role: str  # one sentence that tells an instruct model what it is asked to do here
    example: Example

    def gold(self, task: Task) -> str:
        """The gold answer, for benchmarks that offer it. Neither the agent nor the rubric may see it."""

    def golden(self, task: Task, observations: Sequence[str]) -> tuple[list[list[float]], list[float]]:
        """For benchmarks that offer golden documents: how well each observation's documents match each golden document
        of the task, from 0 to 1, and the share of an observation's documents that were shown before."""

    def curriculum(self, tasks: Sequence[Task], pool: Sequence[Task], iteration: int, seed: int) -> list[Task]:
        """For benchmarks that offer a curriculum: the tasks as they are played in this iteration of training (the first
        is 0), one for each rollout; evaluation plays them as they are. pool: all tasks to train on. Equal for equal
        arguments, so that a run can be resumed. Ids, instructions and kinds stay."""

    def tasks(self, split: str, count: int | None = None) -> TaskSet:
        """The tasks of a split; `count` draws so many of them, evenly over the kinds."""

    def prepare(self, tasks: Iterable[Task], progress: Callable[[int, int], None]) -> None:
        """Does ahead of time, on all cores, what each first use of a task would have to do; progress(done, of)."""

    def brief(self, text: str) -> str:
        """An instruction or observation in few words, for policies that read words: lower case, white space between
        words, and a name written as commands write it."""

    def vocabulary(self) -> str:
        """Words that observations and commands may hold, for tokenizers made of words."""

    def make_env(self) -> Env: ...

    def bind(self, task: Task) -> Mapping[str, Any]: ...

    def adapter(self, task: Task, first_observation: str) -> Adapter: ...

    def demonstrator(self, adapter: Adapter, rng: Random, share: float) -> Player:
        """Follows a scripted plan with probability `share` a step, and wanders otherwise."""

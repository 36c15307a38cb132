"""ALFWorld: household tasks in text. The benchmark, from game data to what is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from trca_jax.envs.alfworld.binder import FIELDS, binding, read_goal
from trca_jax.envs.alfworld.brief import brief
from trca_jax.envs.alfworld.example import EXAMPLE
from trca_jax.envs.alfworld.facts import FACTS, AlfworldAdapter
from trca_jax.envs.alfworld.feedback import ACTIONS
from trca_jax.envs.alfworld.knowledge import CONTEXTS
from trca_jax.envs.alfworld.searcher import Demonstrator
from trca_jax.envs.base import Example, Task, TaskSet
from trca_jax.rubrics.library import read_library
from trca_jax.rubrics.schema import Declaration, Library

if TYPE_CHECKING:
    from trca_jax.envs.alfworld.engine import AlfworldEnv


@dataclass(frozen=True)
class Alfworld:
    """The benchmark (protocol `Benchmark`); the engine is imported when it is first needed.

    source, task_types, seed: which games, as `games.load_games` takes them.
    """

    source: str = "generated"
    task_types: tuple[str, ...] | None = None
    seed: int = 0

    name: ClassVar[str] = "alfworld"
    declaration: ClassVar[Declaration] = Declaration(FACTS, FIELDS, CONTEXTS, ACTIONS)
    offers: ClassVar[frozenset[str]] = frozenset()
    role: ClassVar[str] = "You act in a text world to complete a household task."
    example: ClassVar[Example] = EXAMPLE
    brief = staticmethod(brief)

    @cached_property
    def library(self) -> Library:
        return read_library(Path(__file__).with_name("rubric.toml"), FACTS, FIELDS, CONTEXTS)

    def tasks(self, split: str, count: int | None = None) -> TaskSet:
        from trca_jax.envs.alfworld.games import load_games

        return load_games(self.source, split, task_types=self.task_types, count=count, seed=self.seed)

    def prepare(self, tasks: Iterable[Task], progress: Callable[[int, int], None]) -> None:
        from trca_jax.envs.alfworld.translate import warm_cache

        warm_cache(tasks, progress=progress)

    def vocabulary(self) -> str:
        from trca_jax.envs.alfworld.generator import vocabulary

        return vocabulary()

    def make_env(self) -> AlfworldEnv:
        from trca_jax.envs.alfworld.engine import AlfworldEnv

        return AlfworldEnv()

    def bind(self, task: Task) -> Mapping[str, Any]:
        return binding(read_goal(task.instruction))

    def adapter(self, task: Task, first_observation: str) -> AlfworldAdapter:
        return AlfworldAdapter(read_goal(task.instruction), first_observation)

    def demonstrator(self, adapter: AlfworldAdapter, rng: Random, share: float) -> Demonstrator:
        return Demonstrator(adapter, rng, share)

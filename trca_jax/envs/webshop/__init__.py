"""WebShop: shopping by search and clicks in text. The benchmark, from catalogue files to what is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from trca_jax.envs.base import Example, Task, TaskSet
from trca_jax.envs.webshop.actions import ACTIONS
from trca_jax.envs.webshop.binder import FIELDS, binding, read_wish
from trca_jax.envs.webshop.brief import brief
from trca_jax.envs.webshop.example import EXAMPLE
from trca_jax.envs.webshop.facts import FACTS, WebshopAdapter
from trca_jax.envs.webshop.shopper import Demonstrator
from trca_jax.envs.webshop.tracker import CONTEXTS
from trca_jax.rubrics.library import read_library
from trca_jax.rubrics.schema import Declaration, Library

if TYPE_CHECKING:
    from trca_jax.envs.webshop.env import WebshopEnv


@dataclass(frozen=True)
class Webshop:
    """The benchmark (protocol `Benchmark`); the engine is imported when it is first needed.

    source, task_types, seed, goals, compat, split_by: which tasks, as `tasks.load_tasks` takes them. option_match,
    queries: how they are played, as `env.WebshopEnv` takes them.
    """

    source: str = "generated"
    task_types: tuple[str, ...] | None = None
    seed: int = 0
    goals: str = "synthetic"
    compat: str = "webshop"
    split_by: str = "clean"
    option_match: str = "original"
    queries: str = "free"

    name: ClassVar[str] = "webshop"
    declaration: ClassVar[Declaration] = Declaration(FACTS, FIELDS, CONTEXTS, ACTIONS)
    offers: ClassVar[frozenset[str]] = frozenset()
    role: ClassVar[str] = "You shop online: find, configure and buy a product that fits the instruction."
    example: ClassVar[Example] = EXAMPLE
    brief = staticmethod(brief)

    @cached_property
    def library(self) -> Library:
        return read_library(Path(__file__).with_name("rubric.toml"), FACTS, FIELDS, CONTEXTS)

    def tasks(self, split: str, count: int | None = None) -> TaskSet:
        from trca_jax.envs.webshop.tasks import load_tasks

        return load_tasks(
            self.source, split, task_types=self.task_types, count=count, seed=self.seed, goals=self.goals,
            compat=self.compat, split_by=self.split_by,
        )  # fmt: skip

    def prepare(self, tasks: Iterable[Task], progress: Callable[[int, int], None]) -> None:
        """Builds the search index, which a large catalogue keeps on disk for the workers."""
        from trca_jax.envs.webshop.data import load_shop

        load_shop(self.source)
        progress(1, 1)

    def vocabulary(self) -> str:
        from trca_jax.envs.webshop.vocabulary import vocabulary

        return vocabulary()

    def make_env(self) -> WebshopEnv:
        from trca_jax.envs.webshop.env import WebshopEnv

        return WebshopEnv(self.source, self.option_match, self.queries)

    def bind(self, task: Task) -> Mapping[str, Any]:
        return binding(read_wish(task.instruction))

    def adapter(self, task: Task, first_observation: str) -> WebshopAdapter:
        return WebshopAdapter(read_wish(task.instruction), first_observation)

    def demonstrator(self, adapter: WebshopAdapter, rng: Random, share: float) -> Demonstrator:
        return Demonstrator(adapter, rng, share)

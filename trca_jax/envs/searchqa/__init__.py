"""SearchQA: questions that are answered with a search engine. The benchmark, from files to what is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from trca_jax.envs.base import Example, Task, TaskSet
from trca_jax.envs.searchqa.binder import FIELDS, Reading, binding
from trca_jax.envs.searchqa.brief import brief
from trca_jax.envs.searchqa.example import EXAMPLE
from trca_jax.envs.searchqa.facts import FACTS, SearchqaAdapter
from trca_jax.envs.searchqa.golden import golden_match
from trca_jax.envs.searchqa.tracker import CONTEXTS
from trca_jax.rubrics.library import read_library
from trca_jax.rubrics.schema import Declaration, Library

if TYPE_CHECKING:
    from trca_jax.envs.searchqa.env import SearchqaEnv
    from trca_jax.envs.searchqa.player import Demonstrator

ACTIONS = ("<search> {query} </search>", "<answer> {answer} </answer>")


@dataclass(frozen=True)
class Searchqa:
    """The benchmark (protocol `Benchmark`); corpus and search engine are made when they are first needed.

    source, task_types, seed: which questions, as `tasks.load_tasks` takes them. retriever, protocol, limit, k, reward,
    queries: how they are played, as `env.SearchqaEnv` takes them.
    """

    source: str = "generated"
    task_types: tuple[str, ...] | None = None
    seed: int = 0
    retriever: str = "bm25"
    protocol: str = "verl-agent"
    limit: int = 4
    k: int = 3
    reward: str = "em"
    queries: str = "free"

    name: ClassVar[str] = "searchqa"
    offers: ClassVar[frozenset[str]] = frozenset({"gold answers", "golden documents"})
    role: ClassVar[str] = "You answer questions with the help of a search engine."
    declaration: ClassVar[Declaration] = Declaration(FACTS, FIELDS, CONTEXTS, ACTIONS)
    example: ClassVar[Example] = EXAMPLE
    brief = staticmethod(brief)

    @cached_property
    def library(self) -> Library:
        return read_library(Path(__file__).with_name("rubric.toml"), FACTS, FIELDS, CONTEXTS)

    def gold(self, task: Task) -> str:
        return task.payload.golden_answers[0]

    def golden(self, task: Task, observations: Sequence[str]) -> tuple[list[list[float]], list[float]]:
        from trca_jax.envs.searchqa.sources import golden_documents

        return golden_match(observations, golden_documents(self.source, task.payload.supporting_titles))

    def tasks(self, split: str, count: int | None = None) -> TaskSet:
        from trca_jax.envs.searchqa.sources import BM25, corpus_facts
        from trca_jax.envs.searchqa.tasks import load_tasks

        found = load_tasks(self.source, split, task_types=self.task_types, count=count, seed=self.seed)
        facts = {
            "success": "exact match with a gold alias", "score": self.reward, "retriever": self.retriever or None,
            # what a server searches, only the server knows
            "corpus": corpus_facts(self.source) if self.retriever == BM25 else None,
            "top_k": self.k, "protocol": self.protocol, "actions": self.limit, "queries": self.queries,
        }  # fmt: skip
        return replace(found, facts=facts)

    def prepare(self, tasks: Iterable[Task], progress: Callable[[int, int], None]) -> None:
        """Makes the search engine, or asks its servers, so that what is wrong is said before anything is played."""
        from trca_jax.envs.searchqa.sources import retriever

        if self.retriever:
            retriever(self.source, self.retriever)
        progress(1, 1)

    def vocabulary(self) -> str:
        from trca_jax.envs.searchqa.vocabulary import vocabulary

        return vocabulary()

    def make_env(self) -> SearchqaEnv:
        from trca_jax.envs.searchqa.env import SearchqaEnv

        return SearchqaEnv(
            self.source, self.retriever, protocol=self.protocol, limit=self.limit, k=self.k, reward=self.reward,
            queries=self.queries,
        )  # fmt: skip

    def _read(self, task: Task) -> Reading:
        from trca_jax.envs.searchqa.sources import reading

        return reading(self.source, task.instruction)

    def bind(self, task: Task) -> Mapping[str, Any]:
        return binding(self._read(task))

    def adapter(self, task: Task, first_observation: str) -> SearchqaAdapter:
        return SearchqaAdapter(self._read(task))

    def demonstrator(self, adapter: SearchqaAdapter, rng: Random, share: float) -> Demonstrator:
        from trca_jax.envs.searchqa.player import Demonstrator

        return Demonstrator(adapter, rng, share)

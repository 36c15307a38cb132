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
    queries, structure_score, final_score, retrieval_score: how they are played, as `env.SearchqaEnv` takes them.
    noise_start, noise_end, noise_steps: of ZeroSearch's curriculum, the probability that a search of a rollout for
    training brings noise, at first and after so many iterations (`rewards.noise_probability`).
    Raises ValueError for scores of form without reward 'em' and for a curriculum that is none.
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
    structure_score: float = 0.0
    final_score: float = 0.0
    retrieval_score: float = 0.0
    noise_start: float = 0.0
    noise_end: float = 0.0
    noise_steps: int = 0

    name: ClassVar[str] = "searchqa"
    offers: ClassVar[frozenset[str]] = frozenset({"gold answers", "golden documents", "curriculum"})
    declaration: ClassVar[Declaration] = Declaration(FACTS, FIELDS, CONTEXTS, ACTIONS)
    example: ClassVar[Example] = EXAMPLE
    brief = staticmethod(brief)

    def __post_init__(self) -> None:
        scores = {name: getattr(self, f"{name}_score") for name in ("structure", "final", "retrieval")}
        if any(scores.values()) and self.reward != "em":
            raise ValueError(
                f"reward {self.reward!r} takes no scores of form, found {scores}; set them to 0, or reward to em"
            )
        if not (0 <= self.noise_start <= 1 and 0 <= self.noise_end <= 1):
            raise ValueError(f"noise from {self.noise_start} to {self.noise_end}; expected probabilities in [0, 1]")
        if self._noisy and self.noise_steps < 1:
            raise ValueError(f"noise_steps is {self.noise_steps} iterations of training; expected at least 1")

    @property
    def role(self) -> str:
        return "You answer questions with the help of a search engine." if self.retriever else "You answer questions."

    @property
    def _noisy(self) -> bool:
        return self.noise_start > 0 or self.noise_end > 0

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

    def curriculum(self, tasks: Sequence[Task], pool: Sequence[Task], iteration: int, seed: int) -> list[Task]:
        if not self._noisy:
            return list(tasks)
        from trca_jax.envs.searchqa.noise import noisy_tasks
        from trca_jax.envs.searchqa.rewards import noise_probability

        probability = noise_probability(self.noise_start, self.noise_end, iteration, self.noise_steps)
        return noisy_tasks(tasks, pool, probability=probability, searches=self.limit, seed=f"{seed}/{iteration}")

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
            queries=self.queries, structure_score=self.structure_score, final_score=self.final_score,
            retrieval_score=self.retrieval_score,
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

"""All that stands between a policy and its tasks, made once a run: benchmark, environments, codec and judge."""

from __future__ import annotations

from collections.abc import Callable

from transformers import PreTrainedTokenizerBase

from trca_jax.agents.prompts import PROMPTS
from trca_jax.envs.base import Benchmark, TaskSet, merge
from trca_jax.envs.pool import EnvPool
from trca_jax.envs.registry import make_benchmark
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.sampler import Buckets
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.collect import Collector
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.library import select
from trca_jax.rubrics.schema import Library


class World:
    """Context manager around the environment workers.

    env: the config's env section (name, data, task_types, games, max_steps, workers, deadline_s, patience_s, seed,
    options, the benchmark's own, and rubric, what the judge takes of its library).
    slots: episodes played at once. Raises ValueError for what the benchmark or its library does not have.
    """

    def __init__(self, env, slots: int):
        self.env = env
        self.benchmark = benchmark_of(env)
        self.judge = Judge(library_of(env, self.benchmark))
        self.pool = EnvPool(self.benchmark.make_env, slots=slots, workers=env.workers, deadline_s=env.deadline_s)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_) -> None:
        self.pool.close()

    def tasks(self, split: str, count: int | None, progress: Callable[[int, int], None]) -> TaskSet:
        """The tasks of a split, or of several joined by `+`, made ready to be loaded quickly.

        count: so many of each split; 0 or None: all of them.
        """
        parts = [self.benchmark.tasks(part, count or None) for part in split.split("+")]
        tasks = parts[0] if len(parts) == 1 else merge(parts)
        self.benchmark.prepare(tasks, progress)
        return tasks

    def collector(self, config: Qwen2Config, codec: Codec, agent, temperature: float) -> Collector:
        """A collector for the agent section of the config (max_new, decode, buckets). temperature: of training."""
        return Collector(
            config, codec, self.pool, max_steps=self.env.max_steps, max_new=agent.max_new, decode=agent.decode,
            temperature=temperature, buckets=Buckets(**{name: tuple(sizes) for name, sizes in agent.buckets.items()}),
            patience_s=self.env.patience_s,
        )  # fmt: skip


def benchmark_of(env) -> Benchmark:
    """The benchmark of the config's env section, without environments."""
    return make_benchmark(env.name, source=env.data, task_types=tuple(env.task_types), seed=env.seed, **env.options)


def library_of(env, benchmark: Benchmark) -> Library:
    """What env.rubric takes of the benchmark's library. Raises ValueError for names that it does not have."""
    return select(benchmark.library, benchmark.declaration.contexts, env.rubric.context, env.rubric.without)


def make_codec(agent, tokenizer: PreTrainedTokenizerBase, benchmark: Benchmark) -> Codec:
    """The codec of the agent section. Raises ValueError for an unknown prompt."""
    if agent.prompt not in PROMPTS:
        raise ValueError(f"agent.prompt {agent.prompt!r} is unknown, expected one of {', '.join(PROMPTS)}")
    return Codec(tokenizer, PROMPTS[agent.prompt](benchmark), agent.max_new)

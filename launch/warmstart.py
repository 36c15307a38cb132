"""Makes a tiny start policy by supervised learning on noisy scripted play.

python launch/warmstart.py --config=configs/alfworld.py:warmstart --out=DIR
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import jax
from jax.sharding import Mesh
from ml_collections import ConfigDict

from launch.command import OUT, computed, read_config, run
from trca_jax.envs.base import TaskSet
from trca_jax.learner.record import versions, write_json
from trca_jax.learner.warmstart import WarmstartSettings, batches, warm_start
from trca_jax.policy.config import tiny
from trca_jax.policy.hf import write_model
from trca_jax.policy.load import Policy, load_policy
from trca_jax.policy.qwen2 import init_params
from trca_jax.policy.tokenizer import word_tokenizer
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.demonstrate import demonstrate
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.world import World, make_codec


def main() -> int:
    config = read_config("configs/alfworld.py:warmstart")
    if not OUT.value:
        raise ValueError("--out is missing: the folder that receives the model")
    start = time.time()
    say = lambda text: print(f"[{time.time() - start:6.0f} s] {text}", flush=True)  # noqa: E731
    with World(config.env, slots=128) as world:
        prepared = lambda done, of: done % 100 == 0 and say(f"games prepared: {done} of {of}")  # noqa: E731
        tasks = world.tasks("train", config.env.games, prepared)
        say(str(tasks))
        make_start(config, world, tasks, Path(OUT.value), say)
    say(f"wrote {OUT.value}")
    return 0


def start_policy(
    config: ConfigDict, world: World, tasks: TaskSet, folder: Path, say: Callable[[str], None], mesh: Mesh
) -> Policy:
    """Where a run starts: agent.model, or its own warm start if warmstart.steps is set (kept in the run folder)."""
    if config.warmstart.steps and not (folder / "start" / "warmstart.json").exists():
        make_start(config, world, tasks, folder / "start", say)
    return read_start(config, folder, mesh)


def read_start(config: ConfigDict, folder: Path, mesh: Mesh) -> Policy:
    """Where the run of this folder started."""
    model = str(folder / "start") if config.warmstart.steps else config.agent.model
    return load_policy(model, mesh, **computed(config))


def recorded_start(record: Mapping, folder: Path, mesh: Mesh) -> Policy:
    """Where the recorded run of this folder started. Raises ValueError if its model has other weights now."""
    config = ConfigDict(record["config"])
    start = read_start(config, folder, mesh)
    if start.sha256 != record["weights"]:
        raise ValueError(
            f"{folder} started from weights with sha256 {record['weights'][:12]}, but {config.agent.model!r} has "
            f"{start.sha256[:12]} now; put back the model that the run was made with"
        )
    return start


def make_start(config: ConfigDict, world: World, tasks: TaskSet, out: Path, say: Callable[[str], None]) -> None:
    """Plays demonstrations in these tasks, trains a tiny policy on them and writes it to `out`."""
    w = config.warmstart
    tokenizer = word_tokenizer(_texts(config, world, tasks))
    codec = make_codec(config.agent, tokenizer, world.benchmark)
    size = tiny(len(tokenizer))
    params, won = init_params(size, jax.random.key(config.seed)), []
    for phase, (part, share, count, kept, rows, lr, weight) in enumerate(w.phases):
        episodes = _play(config, world, tasks, codec, share, count, seed=config.seed + phase * 1_000_000)
        won.append(sum(episode.won for episode in episodes) / len(episodes))
        say(f"{len(episodes)} demonstrations, {won[-1]:.1%} of them successful; {kept} are learnt from")
        episodes = [episode for episode in episodes if episode.won or kept == "all"]
        settings = WarmstartSettings(max(round(part * w.steps), 1), rows, lr, weight)
        params = warm_start(
            size, params, batches(episodes, rows, config.env.max_steps, config.seed), settings,
            lambda i, action, loss: say(f"phase {phase} step {i}: action loss {action:.3f}, loss {loss:.3f}"),  # noqa: B023
        )  # fmt: skip
    write_model(out, size, params)
    tokenizer.save_pretrained(str(out))
    games = {"source": tasks.source, "tasks": len(tasks), "sha256": tasks.sha256}
    record = {"games": games, "demonstrations_won": won, "warmstart": w.to_dict(), "versions": versions()}
    write_json(out / "warmstart.json", json.loads(json.dumps(record, default=list)))


def _play(
    config: ConfigDict, world: World, tasks: TaskSet, codec: Codec, share: float, count: int, seed: int
) -> list[Episode]:
    """So many demonstrations, eight of a game in a row, as they share what has been loaded."""
    episodes: list[Episode] = []
    while len(episodes) < count:
        first = len(episodes)
        chosen = [tasks.tasks[i // 8 % len(tasks)] for i in range(first, first + world.pool.slots)]
        episodes += demonstrate(
            world.benchmark, chosen, codec, world.pool, share=share, max_steps=config.env.max_steps, seed=seed + first
        )
    return episodes


def _texts(config: ConfigDict, world: World, tasks: TaskSet) -> Iterator[str]:
    """Texts that hold every word of the benchmark: its names, and what scripted players see and may say."""
    yield world.benchmark.vocabulary()
    codec = make_codec(config.agent, word_tokenizer(()), world.benchmark)
    brief = world.benchmark.brief
    some = tasks.tasks[:: max(len(tasks) // 256, 1)]
    for first in range(0, len(some), world.pool.slots):
        for episode in demonstrate(
            world.benchmark, some[first : first + world.pool.slots], codec, world.pool, share=0.5,
            max_steps=config.env.max_steps, seed=config.seed,
        ):  # fmt: skip
            yield from ("task scene", brief(episode.task.instruction), brief(episode.first_observation))
            for step in episode.steps:
                yield brief(step.after)
                yield from step.admissible


if __name__ == "__main__":
    run(main)

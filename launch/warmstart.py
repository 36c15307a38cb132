"""Makes the tiny start policy by supervised learning on noisy scripted play in generated games.

python launch/warmstart.py --config=configs/alfworld.py --out=DIR
"""

import json
import time
from importlib.metadata import version
from pathlib import Path

import jax
from absl import app, flags
from ml_collections import config_flags

from trca_jax.agents.prompts import compact
from trca_jax.learner.warmstart import WarmstartSettings, batches, warm_start
from trca_jax.policy.config import tiny
from trca_jax.policy.hf import write_model
from trca_jax.policy.qwen2 import init_params
from trca_jax.policy.tokenizer import word_tokenizer
from trca_jax.rollout.demonstrate import demonstrate
from trca_jax.rollout.world import World, make_codec

_CONFIG = config_flags.DEFINE_config_file("config", "configs/alfworld.py")
_OUT = flags.DEFINE_string("out", None, "Folder that receives the model.", required=True)


def main(_):
    config = _CONFIG.value
    w = config.warmstart
    start = time.time()
    say = lambda *what: print(f"[{time.time() - start:6.0f} s]", *what, flush=True)  # noqa: E731
    with World(config.env, slots=128) as world:
        show = lambda done, of: done % 100 == 0 and say(f"games prepared: {done} of {of}")  # noqa: E731
        tasks = world.tasks("train", w.games, show)
        say(tasks)
        # Texts come first, as the words in them make the tokenizer; the episodes are then played once more in ids.
        tokenizer = word_tokenizer(_texts(world, tasks, config))
        codec = make_codec(config.agent, tokenizer)
        say(f"{len(tokenizer)} words")
        episodes = []
        while len(episodes) < w.episodes:
            first = len(episodes)
            batch = [tasks.tasks[i % len(tasks)] for i in range(first, min(first + 128, w.episodes))]
            episodes += demonstrate(
                world.benchmark, batch, codec, world.pool, share=w.share, max_steps=config.env.max_steps,
                seed=config.seed + first,
            )  # fmt: skip
        say(f"{len(episodes)} demonstrations, {sum(e.won for e in episodes) / len(episodes):.3f} of them successful")
    size = tiny(len(tokenizer))
    params = warm_start(
        size, init_params(size, jax.random.key(config.seed)), batches(episodes, w.rows, config.env.max_steps, config.seed),
        WarmstartSettings(w.steps or 2000, w.rows, w.lr, w.observation_weight),
        lambda step, action, loss: step % 100 == 0 and say(f"step {step}: action loss {action:.3f}, loss {loss:.3f}"),
    )  # fmt: skip
    out = Path(_OUT.value)
    write_model(out, size, params)
    tokenizer.save_pretrained(str(out))
    record = {"games": str(tasks), "sha256": tasks.sha256, "warmstart": w.to_dict(), "jax": version("jax")}
    (out / "warmstart.json").write_text(json.dumps(record, indent=2) + "\n")
    say(f"wrote {out}")


def _texts(world, tasks, config):
    """All words of the benchmark: what scripted players see and may say in some hundred games."""
    codec = make_codec(config.agent, word_tokenizer(()))
    some = tasks.tasks[:: max(len(tasks) // 512, 1)]
    for first in range(0, len(some), 128):
        batch = some[first : first + 128]
        for episode in demonstrate(
            world.benchmark, batch, codec, world.pool, share=0.5, max_steps=config.env.max_steps, seed=config.seed
        ):
            yield compact(f"task scene {episode.task.instruction} {episode.first_observation}")
            for step in episode.steps:
                yield compact(step.after)
                yield from step.admissible


if __name__ == "__main__":
    app.run(main)

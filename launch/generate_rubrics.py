"""Writes a rubric library with the help of a language model, once and before any training.

python launch/generate_rubrics.py --config=configs/alfworld.py                            prints the question
python launch/generate_rubrics.py --config=configs/alfworld.py --reply=FILE --out=DIR     reads an answer to it
python launch/generate_rubrics.py --config=configs/alfworld.py --endpoint=URL --model=NAME --out=DIR    asks for one
"""

from __future__ import annotations

from pathlib import Path

from absl import flags
from ml_collections import ConfigDict
from rich.markup import escape

from launch.command import OUT, console, read_chat, read_config, run
from trca_jax.envs.base import Benchmark
from trca_jax.learner.record import write_text
from trca_jax.rollout.judge import transitions
from trca_jax.rollout.probe import probe
from trca_jax.rollout.world import benchmark_of
from trca_jax.rubrics.generate import check_on_sample, question, read_reply, render

_REPLY = flags.DEFINE_string("reply", None, "File with a model's answer.")
_TASKS, _REPEATS = 48, 4  # of the sample


def main() -> int:
    config = read_config()
    benchmark = benchmark_of(config.env)
    messages, chat = question(benchmark.name, benchmark.declaration), read_chat()
    if not (_REPLY.value or chat):
        print("\n\n".join(message["content"] for message in messages))
        return 0
    if _REPLY.value and chat:
        raise ValueError("--reply reads an answer and --endpoint asks for one; give one of them")
    if not OUT.value:
        raise ValueError("--out is missing: the folder that receives rubric.toml")
    out = Path(OUT.value) / "rubric.toml"
    if out.exists():
        raise ValueError(f"{out} exists; give another --out, or move it away")
    out.parent.mkdir(parents=True, exist_ok=True)
    reply = Path(_REPLY.value or out.with_name("reply.txt"))
    if chat:
        write_text(reply, chat.complete(messages).text)
    try:
        library = read_reply(reply.read_text(encoding="utf-8"), benchmark.name, benchmark.declaration)
        shares = check_on_sample(library, *sample(config, benchmark))
    except ValueError as error:
        raise ValueError(f"{reply}: {error}") from None
    write_text(out, render(library))
    for name, share in shares.items():
        console.print(f"{share:7.1%}  {escape(name)}")
    console.print(
        f"of the sample transitions of tasks that bind it; fingerprint {library.fingerprint[:12]}, wrote {out}"
    )
    return 0


def sample(config: ConfigDict, benchmark: Benchmark) -> tuple[list, list]:
    """Facts of the sample's transitions and the bindings of its tasks, each a list for every rollout."""
    tasks = benchmark.tasks("train", _TASKS)
    benchmark.prepare(tasks, lambda done, of: None)
    episodes = probe(benchmark, [*tasks] * _REPEATS, config.env.max_steps, config.seed)
    return [transitions(e, benchmark)[0] for e in episodes], [benchmark.bind(e.task) for e in episodes]


if __name__ == "__main__":
    run(main)

"""Writes a rubric library with the help of a language model, once and before any training.

python launch/generate_rubrics.py --config=configs/alfworld.py                            prints the question
python launch/generate_rubrics.py --config=configs/alfworld.py --reply=FILE --out=DIR     reads an answer to it
"""

from __future__ import annotations

import os
from pathlib import Path

from absl import flags
from rich.markup import escape

from launch.command import OUT, console, read_config, run
from trca_jax.rollout.judge import transitions
from trca_jax.rollout.probe import probe
from trca_jax.rollout.world import benchmark_of
from trca_jax.rubrics.generate import check_on_sample, question, read_reply, render

_REPLY = flags.DEFINE_string("reply", None, "File with a model's answer.")
_TASKS, _REPEATS = 48, 4  # of the sample


def main() -> int:
    config = read_config()
    benchmark = benchmark_of(config.env)
    messages = question(benchmark.name, benchmark.declaration)
    if not _REPLY.value:
        print("\n\n".join(message["content"] for message in messages))
        return 0
    if not OUT.value:
        raise ValueError("--out is missing: the folder that receives rubric.toml")
    out = Path(OUT.value) / "rubric.toml"
    if out.exists():
        raise ValueError(f"{out} exists; give another --out, or move it away")
    try:
        text = Path(_REPLY.value).read_text(encoding="utf-8")
        library = read_reply(text, benchmark.name, benchmark.declaration)
        tasks = benchmark.tasks("train", _TASKS)
        benchmark.prepare(tasks, lambda done, of: None)
        episodes = probe(benchmark, [*tasks] * _REPEATS, config.env.max_steps, config.seed)
        facts = [transitions(episode, benchmark)[0] for episode in episodes]
        shares = check_on_sample(library, facts, [benchmark.bind(episode.task) for episode in episodes])
    except ValueError as error:
        raise ValueError(f"{_REPLY.value}: {error}") from None
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + ".part")
    part.write_text(render(library), encoding="utf-8")
    os.replace(part, out)
    for name, share in shares.items():
        console.print(f"{share:7.1%}  {escape(name)}")
    console.print(
        f"of {sum(map(len, facts)):,} sample transitions; wrote {out}, fingerprint {library.fingerprint[:12]}"
    )
    return 0


if __name__ == "__main__":
    run(main)

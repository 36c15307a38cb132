"""What the episodes of a run are made of: failures, success-free groups, and useful transitions in three denominators.

python launch/diagnose.py --run=DIR [--split=valid_seen] [--repeats=8]     its last checkpoint; played if need be
python launch/diagnose.py --config=configs/alfworld.py --config.workdir=DIR        a model as it is
python launch/diagnose.py --run=DIR --endpoint=URL --model=NAME     with a language model as second annotator
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from launch.command import console, read_chat, run
from launch.evaluate import evaluated
from trca_jax.agents.chat import Chat
from trca_jax.evaluation.annotate import annotate
from trca_jax.evaluation.diagnose import LABELS, agreement, diagnosis, reasons, rubric_labels
from trca_jax.evaluation.diagnosis_view import FRAME, diagnosis_figure, percent, rollout_table, transition_table
from trca_jax.learner.record import write_json
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.world import benchmark_of
from trca_jax.rubrics.language import Judge


def main() -> int:
    config, path, episodes = evaluated()
    chat = read_chat(path.parent / "annotations")
    benchmark = benchmark_of(config.env)
    judge = Judge(benchmark.library)
    T = max((len(episode.steps) for episode in episodes), default=0)
    if not T:
        raise ValueError(f"{path} holds no transition; evaluate more tasks")
    batch = credit_batch(episodes, benchmark, judge, max_steps=T)
    labels = rubric_labels(batch)
    rows, other = diagnosis(labels, episodes), reasons(batch, labels, judge.items)
    record = {"rubric": benchmark.library.fingerprint, "by_rubric": rows, "other_by_item": other}
    console.print(rollout_table(rows))
    if rows[-1]["groups"] == rows[-1]["rollouts"]:
        console.print("Every group is one rollout, so success-free means failed; --repeats=8 plays groups of 8.")
    console.print(transition_table(rows, "the rubric"))
    total = max(rows[-1]["transitions"]["all"]["other"], 1)
    items = ", ".join(f"{name} {percent(n / total)} %" for name, n in other.items())
    console.print(f"Other, by item: {escape(items) or 'none'}")
    out = path.with_name(f"diagnosis-{path.stem}.json")
    diagnosis_figure(out.with_suffix(".png"), rows)
    write_json(out, record)
    if chat:
        write_json(out, record | annotated(chat, episodes, labels))
    console.print(f"figures {out}, picture {out.with_suffix('.png')}")
    return 0


def annotated(chat: Chat, episodes: Sequence[Episode], by_rubric: np.ndarray) -> dict:
    """Prints what the model says of the same transitions and how far it agrees with the rubric; both for the record."""
    with Progress(console=console, transient=True) as bar:
        line = bar.add_task(f"asking {escape(chat.model)}")
        progress = lambda done, of: bar.update(line, completed=done, total=of)  # noqa: E731
        labels = annotate(episodes, by_rubric.shape[1], chat, progress)
    rows, same = diagnosis(labels, episodes), agreement(by_rubric, labels)
    console.print(transition_table(rows, escape(chat.model)))
    kappa = "undefined" if same["kappa"] is None else f"{same['kappa']:.3f}"
    table = Table(title="transitions: the rubric's label (rows) and the model's (columns)", **FRAME)
    for name in ("", *LABELS):
        table.add_column(name, justify="right")
    for name, counts in zip(LABELS, same["counts"], strict=True):
        table.add_row(name, *(f"{n:,}" for n in counts))
    console.print(table)
    missing = rows[-1]["transitions"]["all"]["unlabelled"]
    console.print(
        f"Cohen's κ {kappa}, agreement {percent(same['observed'])} % of {same['transitions']:,} transitions; "
        f"{missing:,} have no label of the model"
    )
    return {"by_model": rows, "model": chat.model, "agreement": same, "usage": chat.usage()}


if __name__ == "__main__":
    run(main)

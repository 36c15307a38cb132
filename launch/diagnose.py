"""What the episodes of a run are made of: failures, success-free groups, and useful transitions in three denominators.

python launch/diagnose.py --run=DIR [--split=valid_seen] [--repeats=8]     its last checkpoint; played if need be
python launch/diagnose.py --config=configs/alfworld.py --config.workdir=DIR        a model as it is
python launch/diagnose.py --run=DIR --endpoint=URL --model=NAME     with a language model as second annotator
"""

from __future__ import annotations

from launch.command import console, run
from launch.evaluate import evaluated
from trca_jax.evaluation.diagnose import diagnosis, reasons, rubric_labels
from trca_jax.evaluation.diagnosis_view import diagnosis_figure, percent, rollout_table, transition_table
from trca_jax.learner.record import write_json
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.world import benchmark_of
from trca_jax.rubrics.language import Judge


def main() -> int:
    config, path, episodes = evaluated()
    benchmark = benchmark_of(config.env)
    judge = Judge(benchmark.library)
    batch = credit_batch(episodes, benchmark, judge, max_steps=max(len(e.steps) for e in episodes))
    labels = rubric_labels(batch)
    rows = diagnosis(labels, episodes)
    other = reasons(batch, labels, judge.items)
    record = {"rubric": benchmark.library.fingerprint, "rubric_judge": rows, "other_by_item": other}
    console.print(rollout_table(rows))
    if rows[-1]["groups"] == rows[-1]["rollouts"]:
        console.print("Every group is one rollout, so success-free means failed; --repeats=8 plays groups of 8.")
    console.print(transition_table(rows, "the rubric"))
    total = max(rows[-1]["transitions"]["all"]["other"], 1)
    console.print("Other, by item: " + ", ".join(f"{name} {percent(n / total)} %" for name, n in other.items()))
    out = path.with_name(f"diagnosis-{path.stem}.json")
    diagnosis_figure(out.with_suffix(".png"), rows)
    write_json(out, record)
    console.print(f"figures {out}, picture {out.with_suffix('.png')}")
    return 0


if __name__ == "__main__":
    run(main)

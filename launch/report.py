"""Writes a run as one HTML page: learning curves, rubric, task types, and its episodes step by step.

python launch/report.py --run=DIR        writes DIR/report.html; the run may still be going on

The page needs no network, server or library and can be sent as it is. It shows the rollouts that training kept (every
config.checkpoint.rollouts iterations and the last) and the episodes of the evaluations: what was seen, thought and
done, the operators that fired with their conditions, r_F, r_B, the return, A_E and A_S, and what the other rollouts of
the group did in the same context. The episodes are judged again by the library and credited by the settings of the run.
Keys: j k steps, [ ] rollouts, { } groups, arrows inside the viewer; the address names the step that is shown.
Groups are taken from each file and task type in turn, as many as fit into 4 MB; the page says how many were left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from launch.command import RUN, console, parse_flags, recorded_config, run
from trca_jax.credit import METHODS
from trca_jax.envs.base import Benchmark
from trca_jax.evaluation.page import Item, page
from trca_jax.evaluation.timeline import Played, timeline
from trca_jax.learner.metrics import read_metrics
from trca_jax.learner.record import read_run, write_text
from trca_jax.learner.rollouts import judged, recredited
from trca_jax.rollout.store import read_episodes, read_signals
from trca_jax.rollout.world import benchmark_of, library_of
from trca_jax.rubrics.language import Judge

BUDGET = 4_000_000  # bytes of episodes
_EVALUATION = ("iteration", "rollouts", "success", "low", "high", "episodes", "split", "results")
_FILE = re.compile(r"(rollouts|evaluation(?:-.+)?)-(\d+)")


def main() -> int:
    parse_flags()
    if not RUN.value:
        raise ValueError("--run is missing: the folder of a run")
    folder = Path(RUN.value)
    record = read_run(folder)
    config = recorded_config(record, folder)
    metrics = read_metrics(folder)
    train = [m for m in metrics if m["kind"] == "train"]
    held_out = evaluations(folder)
    benchmark = benchmark_of(config.env)
    judge = Judge(library_of(config.env, benchmark))
    files = played(folder, config, benchmark, judge)
    if not (train or held_out or files):
        raise ValueError(f"{folder} has no metrics and no episodes yet; let it finish an iteration or an evaluation")
    data = timeline(files, benchmark, BUDGET)
    out = folder / "report.html"
    title = f"{config.env.name} · {config.method}"
    write_text(out, page(title, facts(folder, config, record), notes(record, benchmark, files, data), train, held_out,
                         items(judge, train), data))  # fmt: skip
    shown = sum(len(group["rollouts"]) for file in data["files"] for group in file["groups"])
    size, of = out.stat().st_size / 1e6, sum(len(file.episodes) for file in files)
    console.print(f"report {out}: {size:.1f} MB, {shown} of {of} episodes", soft_wrap=True)
    return 0


def evaluations(folder: Path) -> list[dict[str, Any]]:
    """The run's own evaluations, by iteration. Raises ValueError for a file that cannot be read."""
    found = []
    for path in folder.glob("evaluation-*.json"):
        if re.fullmatch(r"evaluation-\d+", path.stem):
            try:
                content = json.loads(path.read_text())
                found.append({name: content[name] for name in _EVALUATION})
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path} is damaged ({error!r}); delete it and run launch/evaluate.py") from None
    return sorted(found, key=lambda record: record["iteration"])


def played(folder: Path, config: ConfigDict, benchmark: Benchmark, judge: Judge) -> list[Played]:
    """The files of episodes, judged and credited: training first, then evaluations, each from the last to the first."""
    found = [(match[1], int(match[2]), path) for path in folder.glob("*.npz") if (match := _FILE.fullmatch(path.stem))]
    method, files = METHODS[config.method], []
    fields, rubric = judge.library.context if method.context == "fields" else (), "judgement" in method.needs
    for kind, iteration, path in sorted(found, key=lambda x: (x[0] != "rollouts", x[0], -x[1])):
        episodes = read_episodes(path)
        try:
            batch = judged(config, benchmark, judge, episodes)
            credit = recredited(config, batch, read_signals(path))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} does not fit this run ({error}); delete it or make the run again") from None
        what = {"rollouts": "training", "evaluation": "held out"}.get(kind, kind.replace("-", " ", 1))
        count = f"after {iteration:,} iteration{'s' * (iteration > 1)}" if iteration else "start"
        files.append(Played(path.stem, f"{what}, {count}", episodes, batch, credit, fields, rubric))
    return files


def facts(folder: Path, config: ConfigDict, record: Mapping[str, Any]) -> dict[str, str]:
    """What the run is."""
    return {
        "run": folder.resolve().name, "policy": Path(config.agent.model).name, "prompt": config.agent.prompt,
        "seed": str(config.seed), "an iteration": f"{config.tasks} tasks × {config.group_size} rollouts",
        "rubric": record.get("rubric", "")[:12],
    }  # fmt: skip


def notes(
    record: Mapping[str, Any], benchmark: Benchmark, files: Sequence[Played], data: Mapping[str, Any]
) -> list[str]:
    """What a reader must know to read the page right."""
    found = []
    if record.get("rubric") != (now := benchmark.library.fingerprint):
        found.append(f"The rubric has changed since this run: its episodes are judged here by the library {now[:12]}.")
    if any(file.credit is None for file in files):
        found.append("The credit of some files is not known: its method needs signals that are not kept with them.")
    if left := sum(file["left_out"] for file in data["files"]):
        total = sum(len(file.groups()) for file in files)
        found.append(
            f"{left:,} of {total:,} groups were left out to keep the page small. From each file and task type in turn "
            "it shows groups with both outcomes, groups that lost and groups that won."
        )
    return found


def items(judge: Judge, train: Sequence[Mapping[str, Any]]) -> list[Item]:
    """The items as the judge numbers them."""
    operators = {operator.name: operator for operator in judge.library.operators}
    found = []
    for name in judge.items:
        operator = operators[name.partition("[")[0]]
        shares = [m["items"][name] for m in train if name in m.get("items", {})]
        found.append(Item(name, operator.category, operator.when, operator.doc, shares))
    return found


if __name__ == "__main__":
    run(main)

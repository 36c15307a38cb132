"""What the rubric library of a run does on its episodes: what fires where, what is redundant, and what is missed.

python launch/audit_rubrics.py --run=DIR [--split=valid_seen] [--repeats=8]     its last checkpoint; played if need be
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from launch.command import console, run
from launch.evaluate import evaluated
from trca_jax.envs.base import Benchmark
from trca_jax.evaluation.diagnosis_view import FRAME, percent
from trca_jax.learner.metrics import read_metrics
from trca_jax.learner.record import write_json
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.judge import context_ids, credit_batch, transitions
from trca_jax.rollout.world import benchmark_of
from trca_jax.rubrics import audit
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import CATEGORIES, SymbolTable, encode_facts

_SAME = 0.5  # Jaccard from which two items are shown as redundant


def main() -> int:
    config, path, episodes = evaluated()
    episodes = [episode for episode in episodes if not episode.failure]
    if not any(episode.steps for episode in episodes):
        raise ValueError(f"{path} holds no transition; evaluate more tasks")
    benchmark = benchmark_of(config.env)
    judge = Judge(benchmark.library)
    record = {
        "rubric": benchmark.library.fingerprint, **activation(episodes, benchmark, judge),
        "hacking": hacking(read_metrics(path.parent), judge),
    }  # fmt: skip
    for table in tables(record):
        console.print(table)
    out = path.with_name(f"audit-{path.stem}.json")
    write_json(out, record)
    console.print(f"figures {out}")
    return 0


def activation(episodes: Sequence[Episode], benchmark: Benchmark, judge: Judge) -> dict[str, Any]:
    """The audit of episodes, none of which failed, as plain data; shares are None where there is no denominator."""
    T = max(len(e.steps) for e in episodes)
    batch = credit_batch(episodes, benchmark, judge, max_steps=T)
    bound, length, won = batch.item_mask.astype(bool), batch.length, batch.outcome > 0
    fired = audit.real_judgement(batch.judgement, bound, length)
    parts = {"failed": ~won, "won": won, "all": won | ~won}
    rates = {name: audit.rates(fired[rows], bound[rows], length[rows]) for name, rows in parts.items()}
    if_fired, if_not, phi = audit.foretells(fired, bound, length, won)
    operators = [
        {
            "item": name, "category": CATEGORIES[judge.category[j]], "bound": float(bound[:, j].mean()),
            **{f"transitions_{part}": _plain(steps[j]) for part, (steps, _) in rates.items()},
            **{f"rollouts_{part}": _plain(rollouts[j]) for part, (_, rollouts) in rates.items()},
            "won_if_fired": _plain(if_fired[j]), "won_if_not": _plain(if_not[j]), "phi": _plain(phi[j]),
            "unbound": not bound[:, j].any(), "never": bool(bound[:, j].any() and not fired[..., j].any()),
            "always": bool(rates["all"][0][j] == 1),
        }
        for j, name in enumerate(judge.items)
    ]  # fmt: skip
    jaccard, same = audit.overlap(fired, bound, length)
    pairs = [
        {"items": [judge.items[j], judge.items[k]], "jaccard": _plain(jaccard[j, k]), "phi": _plain(same[j, k])}
        for j, k in zip(*np.triu_indices(len(judge.items), k=1), strict=True)
    ]
    templates = [[benchmark.declaration.template(s.action) for s in e.steps] for e in episodes]
    changed = _changes(episodes, benchmark, T)
    spots = audit.blind_spots(fired, changed, templates, won)
    return {
        "episodes": len(episodes), "won": int(won.sum()), "transitions": int(length.sum()),
        "silent": int((audit.real_steps(length, T) & ~fired.any(axis=2)).sum()), "operators": operators,
        "pairs": pairs, "blind_spots": [asdict(spot) | _example(episodes, spot) for spot in spots],
    }  # fmt: skip


def _changes(episodes: Sequence[Episode], benchmark: Benchmark, T: int) -> dict[str, np.ndarray]:
    """Which transitions [R,T] changed each field of the context, or brought a fact that was new in the rollout."""
    told, known = zip(*(transitions(episode, benchmark) for episode in episodes), strict=True)
    changed = {}
    for name in benchmark.declaration.contexts:
        here, after = context_ids([[fields[name] for fields in path] for path in known], T)
        changed[name] = here != after
    for name, values in encode_facts(told, benchmark.library, SymbolTable(), T).items():
        new = audit.novel(values, audit.is_known(values))
        changed[name] = changed.get(name, False) | new
    return changed


def _example(episodes: Sequence[Episode], spot: audit.BlindSpot) -> dict[str, Any]:
    r, t = spot.example
    step = episodes[r].steps[t]
    return {"task": episodes[r].task.id, "action": step.action, "answer": step.after}


def hacking(metrics: Sequence[Mapping[str, Any]], judge: Judge) -> list[dict[str, Any]] | None:
    """Evidence and Execution items whose rate rises while success does not, over all iterations and over their later
    half; None for a run without enough of them."""
    trained = [record for record in metrics if record["kind"] == "train"]
    if len(trained) < 8:
        return None
    names = [n for n, c in zip(judge.items, judge.category, strict=True) if CATEGORIES[c] != "invalidity"]
    names = [name for name in names if all(name in record["items"] for record in trained)]
    items = np.array([[record["items"][name] for name in names] for record in trained])
    success = np.array([record["success"] for record in trained])
    found = []
    for first in (0, len(trained) // 2):
        flagged = audit.paid_for_nothing(items[first:], success[first:])
        for j in np.flatnonzero(flagged):
            found.append({
                "item": names[j], "iterations": [first, len(trained)], "trend": float(audit.trend(items[first:, j])),
                "success_trend": float(audit.trend(success[first:])),
                "rate": [float(items[first, j]), float(items[-1, j])],
                "success": [float(success[first]), float(success[-1])],
            })  # fmt: skip
    return found


def tables(record: Mapping[str, Any]) -> list[Table | str]:
    """What is printed of an audit."""
    shown: list[Table | str] = [_operators(record)]
    for fault, what in (("unbound", "Bound by no task"), ("never", "Never fires"), ("always", "Fires always")):
        names = [row["item"] for row in record["operators"] if row[fault]]
        shown.append(f"{what}: {escape(', '.join(names)) or 'none'}")
    pairs = [p for p in record["pairs"] if p["jaccard"] is not None and p["jaccard"] >= _SAME]
    same = [f"{' and '.join(p['items'])} {p['jaccard']:.2f}" for p in sorted(pairs, key=lambda p: -p["jaccard"])]
    shown.append(f"Redundant (Jaccard of at least {_SAME}): {escape('; '.join(same)) or 'none'}")
    shown.append(_spots(record))
    if record["hacking"] is None:
        shown.append("Signs of reward hacking: not looked for, fewer than 8 iterations are recorded")
    else:
        signs = [
            f"{sign['item']} rises from {sign['rate'][0]:.2f} to {sign['rate'][1]:.2f} (t {sign['trend']:.1f}) in "
            f"iterations {sign['iterations'][0]}–{sign['iterations'][1]}, while success goes from "
            f"{sign['success'][0]:.2f} to {sign['success'][1]:.2f} (t {sign['success_trend']:.1f})"
            for sign in record["hacking"]
        ]
        shown.append(f"Signs of reward hacking: {escape('; '.join(signs)) or 'none'}")
    return shown


def _operators(record: Mapping[str, Any]) -> Table:
    failed = record["episodes"] - record["won"]
    table = Table(title=f"where operators fire, in %, {failed} failed and {record['won']} won rollouts", **FRAME)
    table.add_column("operator", overflow="fold")
    for name in (
        "steps\nfailed", "steps\nwon", "rollouts\nfailed", "rollouts\nwon", "success\nif fired", "success\nif not", "φ",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    for category in CATEGORIES:
        table.add_section()
        for row in record["operators"]:
            if row["category"] == category and not row["unbound"]:
                names = ("transitions_failed", "transitions_won", "rollouts_failed", "rollouts_won")
                shares = [percent(row[name]) for name in (*names, "won_if_fired", "won_if_not")]
                table.add_row(escape(row["item"]), *shares, "–" if row["phi"] is None else f"{row['phi']:+.2f}")
    return table


def _spots(record: Mapping[str, Any]) -> Table:
    blind = sum(spot["count"] for spot in record["blind_spots"])
    title = f"blind spots: {blind:,} of {record['transitions']:,} transitions changed something and fired nothing"
    table = Table(title=title, **FRAME)
    table.add_column("action")
    for name in ("blind", "% of its", "rollouts\nwon %"):
        table.add_column(name, justify="right")
    table.add_column("what changed, in how many", overflow="fold")
    for spot in record["blind_spots"]:
        changes = ", ".join(f"{name} {n:,}" for name, n in list(spot["changes"].items())[:4])
        share = percent(spot["count"] / spot["of"])
        table.add_row(spot["template"], f"{spot['count']:,}", share, percent(spot["won"]), changes)
    return table


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


if __name__ == "__main__":
    run(main)

"""What an iteration is summarised by, and where it is written."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from tensorboardX import SummaryWriter

from trca_jax.credit.types import EXECUTION, INVALIDITY, Credit, CreditBatch
from trca_jax.rollout.episode import Episode


def rollout_metrics(episodes: Sequence[Episode], batch: CreditBatch, credit: Credit, items: Sequence[str]) -> dict:
    """Figures of one batch of rollouts; episodes that failed count in `failures` alone.

    success: share of rollouts won. score: sum of the environment's rewards, mean over rollouts. all_failed_groups:
    share of tasks without a success. useful: share of steps with an Evidence or Execution item; useful_failed: the same
    in rollouts that were not won. valid: share of steps whose output was parsed. foundational, breakthrough: Σ_t r_F
    and Σ_t r_B, mean over rollouts. steps: mean length. items: share of the rollouts that bind an item in which it
    fired. kinds: success of each kind of task.
    """
    live = batch.length > 0
    count = max(int(live.sum()), 1)
    real = np.arange(batch.valid.shape[1]) < batch.length[:, None]
    fired = batch.judgement * batch.item_mask[:, None] * real[..., None]
    useful = (fired * (batch.item_category != INVALIDITY)[:, None]).any(axis=2)
    failed = real & (batch.outcome == 0)[:, None]
    groups = {g: batch.outcome[live & (batch.group == g)].any() for g in np.unique(batch.group[live])}
    bound = (batch.item_mask.astype(bool) & live[:, None]).sum(axis=0)
    rates = fired.any(axis=1).sum(axis=0) / np.maximum(bound, 1)
    kinds: dict[str, list[bool]] = {}
    for episode in episodes:
        if not episode.failure:
            kinds.setdefault(episode.task.kind, []).append(episode.won)
    share = lambda x, of: float((x & of).sum() / max(of.sum(), 1))  # noqa: E731
    return {
        "success": float(batch.outcome[live].sum() / count),
        "score": sum(episode.score for episode in episodes if not episode.failure) / count,
        "all_failed_groups": float(np.mean([not won for won in groups.values()])) if groups else 0.0,
        "useful": share(useful, real),
        "useful_failed": share(useful, failed),
        "valid": share(batch.valid.astype(bool), real),
        "foundational": float(np.asarray(credit.foundational).sum() / count),
        "breakthrough": float(np.asarray(credit.breakthrough).sum() / count),
        "steps": float(batch.length.sum() / count),
        "failures": int((~live).sum()),
        "truncated": sum(episode.truncated for episode in episodes),
        "items": {name: float(rate) for name, rate, n in zip(items, rates, bound, strict=True) if n},
        "kinds": {kind: float(np.mean(won)) for kind, won in sorted(kinds.items())},
        **{name: float(value) for name, value in credit.diagnostics.items()},
    }


def funnel(judge) -> list[str]:
    """The Execution items, in the order of the library: the way to a success."""
    return [name for name, category in zip(judge.items, judge.category, strict=True) if category == EXECUTION]


def flatten(metrics: dict) -> dict[str, float]:
    """{"a": {"b": 1}} -> {"a/b": 1}."""
    flat: dict[str, float] = {}
    for name, value in metrics.items():
        inner = flatten(value).items() if isinstance(value, dict) else None
        flat.update({name: value} if inner is None else {f"{name}/{key}": v for key, v in inner})
    return flat


class MetricsLog:
    """`metrics.jsonl` and TensorBoard scalars of a run folder; one line an iteration or evaluation.

    keep: how many iterations the last checkpoint holds. Later records (of a run that was cut off) are dropped, as they
    will be made again. write: False remembers the records and leaves the files to another process.
    """

    def __init__(self, folder: Path, keep: int, write: bool = True):
        self._path = folder / "metrics.jsonl"
        found = read_metrics(folder) if keep else []
        self.records = [r for r in found if r["iteration"] < keep + (r["kind"] == "eval")]
        self._board = None
        if not write:
            return
        part = self._path.with_suffix(".part")
        part.write_text("".join(json.dumps(record) + "\n" for record in self.records))
        os.replace(part, self._path)
        # Drawn anew: a run that was killed has drawn what is dropped here, and lost the last minutes of what is not.
        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=0)
        for record in self.records:
            self._draw(record)

    def write(self, record: dict) -> None:
        """record: holds "kind" (train or eval) and "iteration"; nested dicts become scalars named a/b."""
        self.records.append(record)
        if self._board is None:
            return
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self._draw(record)

    def close(self) -> None:
        with suppress(OSError):  # on a full disk; the records are in metrics.jsonl
            if self._board is not None:
                self._board.close()

    def _draw(self, record: dict) -> None:
        for name, value in flatten(record).items():
            if isinstance(value, int | float):
                self._board.add_scalar(f"{record['kind']}/{name}", value, record["iteration"])


def read_metrics(folder: Path) -> list[dict]:
    """The records of a run folder, [] if it has none; a last line that was cut off is left out."""
    path = Path(folder) / "metrics.jsonl"
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records

"""The rollouts of an iteration: judged as its method reads them, kept in the run folder, and credited again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict

from trca_jax import credit
from trca_jax.credit import METHODS, Credit, CreditBatch
from trca_jax.envs.base import Benchmark
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.store import write_episodes


def judged(config: ConfigDict, benchmark: Benchmark, judge, episodes: Sequence[Episode]) -> CreditBatch:
    """The batch of config.method, without signals. judge: of the benchmark's library, or of a part of it. Raises as
    `credit_batch` does."""
    return credit_batch(
        episodes, benchmark, judge, max_steps=config.env.max_steps, context=METHODS[config.method].context,
        similarity=config.credit[config.method].get("similarity", 0.0),
    )  # fmt: skip


def write_rollouts(folder: Path, iteration: int, episodes: Sequence[Episode], batch: CreditBatch) -> None:
    """Writes `rollouts-<iteration>.npz`: the episodes, and those signals of the batch that only the policy, the critic
    or hidden answers can give."""
    optional = [field.name for field in dataclasses.fields(batch) if field.default is None]
    signals = {name: np.asarray(array) for name in optional if (array := getattr(batch, name)) is not None}
    write_episodes(folder / f"rollouts-{iteration}.npz", episodes, signals)


def recredited(config: ConfigDict, batch: CreditBatch, signals: Mapping[str, np.ndarray]) -> Credit | None:
    """The credit of a judged batch by the settings of the run, on the host; None if a signal that its method needs is
    not there. Raises ValueError for signals that do not fit the batch."""
    absent = {field.name for field in dataclasses.fields(batch) if getattr(batch, field.name) is None}
    if METHODS[config.method].needs & absent - set(signals):
        return None
    make = credit.make(config.method, **config.credit[config.method])
    return jax.device_get(make(dataclasses.replace(batch, **signals)))

"""Several processes that play one run: each plays its own share of the rollouts, then all know all of them."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils


def share(count: int) -> range:
    """The rollouts 0..count-1 that this process plays. Raises ValueError if the processes cannot have equal shares."""
    processes = jax.process_count()
    if count % processes:
        raise ValueError(f"{count} rollouts cannot be shared equally by {processes} processes; choose a multiple")
    size = count // processes
    return range(jax.process_index() * size, (jax.process_index() + 1) * size)


def leads() -> bool:
    """Whether this process is the one that writes files and speaks."""
    return jax.process_index() == 0


def gather(data: bytes) -> list[bytes]:
    """The data of every process, in their order. Every process must call it."""
    if jax.process_count() == 1:
        return [data]
    sizes = multihost_utils.process_allgather(np.array([len(data)], np.int64)).reshape(-1)
    padded = np.zeros(sizes.max(), np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    rows = np.asarray(multihost_utils.process_allgather(padded))
    return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]

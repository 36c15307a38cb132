"""Every credit method beside the loop and the numpy version that one would write, at three sizes.

Both comparisons come from the tests (tests/oracles.py, tests/vectorised.py), where they are also held to be equal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import jax
import numpy as np
from ml_collections import ConfigDict

from launch.suites import Row, compare
from trca_jax.credit import METHODS, CreditBatch, make
from trca_jax.rollout.judge import context_ids

ITEMS, TOKENS, DOCUMENTS, GROUP = 15, 8, 2, 8


def batch_of(rollouts: int, steps: int, seed: int = 0) -> CreditBatch:
    """Groups of eight rollouts of random length, one in eight won, in contexts that a few share; all signals."""
    rng = np.random.default_rng(seed)
    group = np.arange(rollouts) // GROUP
    length = rng.integers(steps // 2, steps + 1, rollouts)
    outcome = (rng.random(rollouts) < 0.125).astype(np.float32)
    last = np.arange(steps) == length[:, None] - 1
    states = group[:, None] * 2 * steps + rng.integers(0, 2 * steps, (rollouts, steps + 1))
    live = np.arange(steps) < length[:, None]
    # Ids of states that were acted in come first.
    seen, ids = np.unique(np.concatenate([states[:, :-1][live], states[:, 1:][live]]), return_inverse=True)
    acted = np.zeros(len(seen), bool)
    acted[ids[: live.sum()]] = True
    order = np.argsort(np.argsort(~acted, kind="stable"), kind="stable").astype(np.int32)
    context, following = np.zeros((2, rollouts, steps), np.int32)
    context[live], following[live] = np.split(order[ids], 2)
    uniform = lambda *shape: rng.random(shape, np.float32)  # noqa: E731
    return CreditBatch(
        judgement=(uniform(rollouts, steps, ITEMS) < 0.1).astype(np.int8),
        item_category=np.broadcast_to(np.arange(ITEMS, dtype=np.int32) // 5, (rollouts, ITEMS)),
        item_mask=np.ones((rollouts, ITEMS), bool),
        r_env=np.where(last, outcome[:, None], 0).astype(np.float32),
        outcome=outcome,
        length=length.astype(np.int32),
        group=group.astype(np.int32),
        context=context,
        next_context=following,
        valid=np.ones((rollouts, steps), bool),
        gold_logp=-5 * uniform(rollouts, steps + 1),
        tool=live & ~last,
        hindsight_logp=-5 * uniform(rollouts, steps),
        token_values=uniform(rollouts, steps, TOKENS),
        token_mask=np.arange(TOKENS) < rng.integers(2, TOKENS + 1, (rollouts, steps))[:, :, None],
        golden_similarity=uniform(rollouts, steps, DOCUMENTS),
        redundancy=uniform(rollouts, steps),
        step_score=np.where(uniform(rollouts, steps) < 0.02, np.nan, np.round(2 * uniform(rollouts, steps) - 1)),
    )


def _milliseconds(call: Callable[[], object], repeats: int) -> list[float]:
    """Wall time of every call, after one that is not counted."""
    jax.block_until_ready(call())
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call())
        spent.append(1e3 * (time.perf_counter() - start))
    return spent


def _python(batch: CreditBatch):
    """The batch for loops: lists index several times faster than arrays."""
    return type("Lists", (), {name: None if x is None else x.tolist() for name, x in vars(batch).items()} | {
        name: getattr(batch, name) for name in ("golden_similarity",)})  # fmt: skip


def credit(config: ConfigDict, quick: bool) -> list[Row]:
    """128 rollouts of 25 and 50 steps, and ten and a hundred times as many of 50; arrays on the device, no checks.

    Rows METHOD_N_vs_loop and METHOD_N_vs_numpy are in ms for N steps; METHOD_growth is the time of a step at the
    largest size over that at the middle one. contexts_N: numbering N contexts on the host, apart from all of these.
    """
    sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
    import oracles
    import vectorised

    sizes = [(128, 25), (128, 50)] if quick else [(128, 25), (128, 50), (1280, 50), (12800, 50)]
    repeats = 3 if quick else 9
    rows, per_step = [], {}
    for rollouts, steps in sizes:
        host = batch_of(rollouts, steps)
        device = jax.device_put(host)
        count = rollouts * steps
        for name in METHODS:
            method = make(name, checks=False)
            ours = _milliseconds(lambda: method(device).advantage, repeats)  # noqa: B023
            per_step[name, count] = median(ours) / count
            theirs = _milliseconds(lambda: getattr(vectorised, name)(host), repeats)  # noqa: B023
            rows.append(
                compare(f"{name}_{count}_vs_numpy", "ms", list(zip(ours, theirs, strict=True)), more_is_better=False)
            )
            if rollouts == 128:
                lists, start = _python(host), time.perf_counter()
                getattr(oracles, name)(lists)
                loop = 1e3 * (time.perf_counter() - start)
                rows.append(compare(f"{name}_{count}_vs_loop", "ms", [(median(ours), loop)], more_is_better=False))
        paths = [[(g, c) for c in own] for g, own in zip(host.group.tolist(), host.context.tolist(), strict=True)]
        rows.append(Row(f"contexts_{count}", median(_milliseconds(lambda: context_ids(paths, steps), 3)), "ms"))  # noqa: B023
    if not quick:
        rows += [Row(f"{name}_growth", per_step[name, 640_000] / per_step[name, 64_000], "times") for name in METHODS]
    return rows

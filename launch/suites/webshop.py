"""WebShop's engine by itself: the original needs Java and packages of 2022, so nothing stands beside it here."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from statistics import median

from launch.suites import Row
from launch.suites.webshop_process import STEPS
from trca_jax.envs.base import Env, Task
from trca_jax.envs.registry import make_benchmark
from trca_jax.envs.webshop.data import GENERATED, holds_catalogue

EPISODES = 128  # 16 tasks of 8 rollouts


def webshop(source: str, quick: bool) -> list[Row]:
    """Rows of the generated catalogue, and of `source` if it holds another one (then named webshop_data_...).

    step_ms: mean over random walks from the search page, page and commands included; each walk has a task of its own,
    so most searches are new. ready_s: from the start of a fresh process to the first observation. 128_episodes_mb:
    resident memory, beyond the bare interpreter's, of a process that has played 15 steps of 128 episodes: catalogue,
    index, packages and all. Seconds are CPU time. Raises ValueError if a process fails.
    """
    rows = []
    sources = {"webshop": GENERATED}
    if holds_catalogue(source):
        sources["webshop_data"] = source
    for name, place in sources.items():
        fresh = [_fresh(place) for _ in range(1 if quick else 3)]
        rows.append(Row(f"{name}_step_ms", step_ms(place, 40 if quick else 400), "ms"))
        rows.append(Row(f"{name}_ready_s", median(figures["ready_s"] for figures in fresh), "s"))
        if fresh[0]["mb"] is not None:
            rows.append(Row(f"{name}_{EPISODES}_episodes_mb", median(figures["mb"] for figures in fresh), "MB"))
    return rows


def step_ms(source: str, walks: int) -> float:
    """Mean CPU milliseconds of a step over so many random walks of at most 15 steps; a purchase ends one."""
    benchmark = make_benchmark("webshop", source=source, queries="offered")
    env, rng = benchmark.make_env(), random.Random(0)
    spent, steps = 0.0, 0
    for task in benchmark.tasks("train", walks):
        more, seconds = _walk(env, task, rng)
        steps, spent = steps + more, spent + seconds
    return spent / steps * 1e3


def _walk(env: Env, task: Task, rng: random.Random) -> tuple[int, float]:
    seen, spent, steps = env.reset(task), 0.0, 0
    while not seen.done and steps < STEPS:
        command = rng.choice(seen.admissible)
        start = time.thread_time()
        seen = env.step(command)
        spent += time.thread_time() - start
        steps += 1
    return steps, spent


def _fresh(source: str) -> dict[str, float | None]:
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    done = subprocess.run(
        [sys.executable, "-m", "launch.suites.webshop_process", source, str(EPISODES)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ValueError(f"a process that plays WebShop failed: {(done.stderr.splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])

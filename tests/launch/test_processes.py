"""Two processes of two devices against one process of four: the same run, its checkpoint and its resumption."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from commands import ROOT

from trca_jax.learner.metrics import read_metrics
from trca_jax.rollout.store import read_episodes


def start(commands, folder, devices, *, processes=1, **overrides):
    """Runs launch/train.py to its end in so many processes, found as on Slurm; what the first one printed."""
    arguments = commands.arguments(
        folder, ppo__micro_rows=4, ppo__minibatches=1, mesh="data:2,fsdp:2", agent__decode="free",
        distributed=processes > 1, **overrides,
    )  # fmt: skip
    job = {
        "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": str(processes),
        "SLURM_STEP_NUM_NODES": str(processes),
    } if processes > 1 else {}  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, "launch/train.py", *arguments], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={
                **os.environ, **commands.cache_settings, "JAX_NUM_CPU_DEVICES": str(devices), **job,
                **({"SLURM_PROCID": str(rank), "SLURM_LOCALID": "0"} if job else {}),
            },
        )
        for rank in range(processes)
    ]  # fmt: skip
    ends = [process.communicate(timeout=1200) for process in running]
    assert [process.returncode for process in running] == [0] * processes, ends
    for out, _ in ends[1:]:  # only the first one speaks, but for the library that connects them
        assert not re.sub(r"\[Gloo\][^\n]*", "", out).strip()
    return ends[0][0]


@pytest.fixture(scope="module")
def runs(commands, tmp_path_factory):
    one, two = (tmp_path_factory.mktemp("processes") / name for name in ("one", "two"))
    start(commands, one, 4, iterations=3)
    start(commands, two, 2, processes=2, iterations=2)
    assert "continuing after iteration 2" in start(commands, two, 2, processes=2, iterations=3)
    return one, two


def numbers(record):
    """The figures of a record, by their names."""
    flat = {}
    for name, value in record.items():
        if name not in ("seconds", "speed"):
            flat |= {f"{name}/{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def test_two_processes_sample_and_learn_what_one_does(runs):
    one, two = (read_metrics(folder) for folder in runs)
    trained = lambda records: [numbers(r) for r in records if r["kind"] == "train"]  # noqa: E731
    assert len(trained(one)) == len(trained(two)) == 3
    for a, b in zip(trained(one), trained(two), strict=True):
        assert a.keys() == b.keys()
        for name, value in a.items():
            assert b[name] == (pytest.approx(value, rel=1e-4, abs=1e-5) if isinstance(value, float) else value), name
    assert any(r["grad_norm"] > 0 for r in trained(one))


def test_both_evaluate_to_the_same_episodes(runs):
    one, two = (folder / "evaluation-3.json" for folder in runs)
    assert one.read_text() == two.read_text()
    played = [read_episodes(path.with_suffix(".npz")) for path in (one, two)]
    told = [[(e.task.id, e.group, e.won, [s.action for s in e.steps]) for e in episodes] for episodes in played]
    assert told[0] == told[1] and len({group for _, group, *_ in told[0]}) > 1
    assert [task for task, *_ in told[0]] == [r["task"] for r in json.loads(one.read_text())["results"]]


def test_their_checkpoints_hold_the_same_policy(runs, commands):
    one, two = (commands.policy(folder) for folder in runs)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_without_a_cluster_it_says_so(commands, tmp_path):
    job = commands.start("train.py", *commands.arguments(tmp_path / "run", distributed=True))
    out, err = job.communicate(timeout=1200)
    assert (job.returncode, out) == (2, "")
    assert "no other processes were found" in err and "srun" in err

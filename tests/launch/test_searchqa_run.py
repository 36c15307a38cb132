"""Short runs of search baselines: what reaches the environments, and what is left in the folder."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
from commands import write_small_model

from launch import train
from launch.results import run_rows
from trca_jax.envs.searchqa import Searchqa
from trca_jax.learner.loop import iteration_tasks
from trca_jax.learner.metrics import read_metrics
from trca_jax.rollout.collect import Collector

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
FIELDS = {
    "tasks": 2, "group_size": 2, "iterations": 2, "eval.games": 2, "env.workers": 0, "checkpoint.every": 1,
    "checkpoint.rollouts": 1, "ppo.micro_rows": 4, "ppo.minibatches": 1, "ppo.kl": 0.0, "agent.buckets.chunk": (64,),
    "agent.buckets.slots": (256,), "agent.buckets.commands": (48,), "agent.buckets.batch": (1,),
    "env.options.limit": 3, "env.max_steps": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_small_model(tmp_path_factory.mktemp("start") / "model", words=Searchqa().vocabulary())


@pytest.fixture
def run(commands, model, tmp_path):
    """run(preset, **fields) -> the records of its metrics."""

    def play(preset, **more):
        given = {**FIELDS, "agent.model": model, "workdir": tmp_path, **more}.items()
        with redirect_stdout(io.StringIO()):
            arguments = [f"--config=configs/searchqa.py:{preset}", *(f"--config.{k}={v}" for k, v in given)]
            assert commands.call(train.main, *arguments) == 0
        return read_metrics(tmp_path)

    return play


def test_search_r1_trains_with_a_critic_and_says_what_it_is(run, tmp_path):
    records = run("search_r1", **{"env.options.structure_score": 0.2})
    assert [r["kind"] for r in records] == ["eval", "train", "train", "eval"]
    for trained in records[1:3]:
        assert np.isfinite(trained["value_loss"]) and trained["grad_norm"] > 0 and trained["failures"] == 0
    config = json.loads((tmp_path / "run.json").read_text())["config"]
    assert (config["baseline"], config["method"], config["env"]["max_steps"]) == ("search_r1", "ppo", 3)
    assert config["env"]["options"]["structure_score"] == 0.2
    assert {row["setting"] for row in run_rows(tmp_path)} == {"search_r1"}


def test_zerosearch_is_noisy_in_training_alone_and_goes_on_with_the_same_noise(run, monkeypatch):
    played, play = [], Collector.__call__

    def watched(self, params, tasks, *rest, **more):
        played.append((tasks, "decoding" in more))
        return play(self, params, tasks, *rest, **more)

    monkeypatch.setattr(Collector, "__call__", watched)
    noise = {"noise_start": 0.5, "noise_end": 1.0, "noise_steps": 2}
    given = {f"env.options.{name}": value for name, value in noise.items()}
    run("zerosearch", iterations=1, **given)
    records = run("zerosearch", **given)  # from the checkpoint of the first iteration
    assert [(r["kind"], r["iteration"]) for r in records] == [
        ("eval", 0), ("train", 0), ("eval", 1), ("train", 1), ("eval", 2)
    ]  # fmt: skip
    assert all(r["grad_norm"] >= 0 and r["failures"] == 0 for r in records if r["kind"] == "train")

    held_out = [tasks for tasks, evaluation in played if evaluation]
    assert len(held_out) == 3 and all(task.payload.distractors == () for tasks in held_out for task in tasks)
    trained = [tasks for tasks, evaluation in played if not evaluation]
    benchmark = Searchqa(reward="f1", limit=3, **noise)
    pool = benchmark.tasks("train").tasks
    for iteration, tasks in enumerate(trained):
        rollouts = [task for task in iteration_tasks(pool, 2, iteration, 0) for _ in range(2)]
        expected = benchmark.curriculum(rollouts, pool, iteration, 0)
        assert [t.payload for t in tasks] == [t.payload for t in expected]
    assert len(trained) == 2 and any(d for tasks in trained for t in tasks for d in t.payload.distractors)

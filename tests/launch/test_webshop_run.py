"""A run in the shop: what it says about its tasks, and what it writes."""

import io
import json
from contextlib import redirect_stdout

import pytest
from commands import write_small_model

from configs import webshop
from launch import train
from trca_jax.envs.registry import make_benchmark
from trca_jax.envs.webshop.tasks import load_tasks
from trca_jax.learner.metrics import read_metrics

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
FIELDS = {
    "iterations": 1, "tasks": 2, "group_size": 2, "env.max_steps": 3, "eval.games": 4, "ppo.minibatches": 1,
    "agent.buckets.chunk": (192,), "agent.buckets.slots": (512,), "env.task_types": ("beauty", "grocery"),
}  # fmt: skip


def test_a_run_tells_its_ceiling_and_reports_the_score(commands, tmp_path):
    model = write_small_model(tmp_path / "model", words=make_benchmark("webshop").vocabulary())
    fields = {**FIELDS, "workdir": str(tmp_path / "run"), "agent.model": str(model)}.items()
    with redirect_stdout(io.StringIO()) as out:
        code = commands.call(
            train.main, "--config=configs/webshop.py", *(f"--config.{name}={value}" for name, value in fields)
        )
    assert code == 0
    said = " ".join(out.getvalue().split())
    held_out = load_tasks("generated", "test", task_types=("beauty", "grocery"), count=4)
    assert held_out.source in said and "goal sha1" in held_out.source and "out of reach" in held_out.source
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["evaluation"]["sha256"] == held_out.sha256
    assert record["config"]["env"]["options"]["option_match"] == "original"
    before, trained, after = read_metrics(tmp_path / "run")
    assert before["kind"] == after["kind"] == "eval" and all(0 <= r["score"] <= 1 for r in (before, trained, after))
    assert {"query_formed", "fitting_bought"} <= trained["items"].keys()


def test_presets_are_the_published_setting():
    c = webshop.get_config("qwen2.5-7b")
    assert (c.env.max_steps, max(c.agent.buckets.chunk), c.agent.max_new) == (15, 4096, 512)
    assert c.env.options.queries == "free"
    with pytest.raises(ValueError, match="preset 'huge' is unknown, expected tiny, warmstart or qwen"):
        webshop.get_config("huge")

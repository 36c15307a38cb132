"""The benchmark of the tutorial: it is small, it plays, its rubric sees what happens, and a policy is trained on it."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest
from commands import ROOT, SMALL, write_small_model

from launch import train
from trca_jax.credit import make
from trca_jax.envs.registry import make_benchmark
from trca_jax.learner.metrics import read_metrics
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.probe import probe
from trca_jax.rubrics.language import Judge

FOLDER = ROOT / "notebooks"
pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections


@pytest.fixture
def chests(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return make_benchmark("chests:Chests", source="generated", task_types=("chest",), seed=1)


def test_it_has_less_than_200_lines():
    files = [path for path in (FOLDER / "chests").iterdir() if path.is_file()]
    assert {path.name for path in files} == {"__init__.py", "config.py", "engine.py", "facts.py", "rubric.toml"}
    assert sum(bool(line.strip()) for path in files for line in path.read_text().splitlines()) < 200


def test_its_tasks_are_stable_and_splits_differ(chests):
    train_set, held_out = chests.tasks("train", 20), chests.tasks("valid_unseen", 20)
    assert train_set == chests.tasks("train", 20) and train_set.sha256 != held_out.sha256
    assert len({task.id for task in (*train_set, *held_out)}) == 40
    for task in train_set:
        assert set(task.payload["keys"].values()) == {"red", "blue", "green"} and len(task.payload["keys"]) == 3
        assert chests.bind(task) == {"goal": task.payload["goal"]}


def test_the_plan_wins_and_every_step_of_it_is_seen(chests):
    task = chests.tasks("train", 1).tasks[0]
    env, goal = chests.make_env(), task.payload["goal"]
    drawer = next(number for number, colour in task.payload["keys"].items() if colour == goal)
    seen = env.reset(task)
    adapter, facts = chests.adapter(task, seen.text), []
    for action in (f"open drawer {drawer}", f"open {goal} chest", f"take {goal} key", f"unlock {goal} chest", None):
        admissible = seen.admissible
        seen = env.step(action or "")
        facts.append(adapter.transition(action, seen.text, admissible))
    assert not seen.done and env.step(f"open {goal} chest").won
    assert [fact["accepted"] for fact in facts] == [True, False, True, True, False]
    assert (facts[0]["revealed"], facts[2]["taken"], facts[3]["unlocked"]) == (goal, goal, goal)
    assert adapter.context() == {"searched": 1, "stage": "open", "holding": goal}


def test_every_operator_fires_and_none_always(chests):
    episodes = probe(chests, chests.tasks("train", 60).tasks, 12, 0)
    judge = Judge(chests.library)
    batch = credit_batch(episodes, chests, judge, max_steps=12)
    real = np.arange(12) < batch.length[:, None]
    rates = batch.judgement[real].mean(axis=0)
    assert ((rates > 0.01) & (rates < 0.9)).all(), dict(zip(judge.items, rates, strict=True))
    opened = batch.judgement[..., judge.items.index("chest_opened")].any(axis=1)
    assert opened.tolist() == [episode.won for episode in episodes] and 0 < opened.sum() < 60


def test_without_success_its_advantages_still_prefer_the_key(chests):
    """Of the failed rollouts of one task, taking the right key is worth more than the other steps, on average."""
    tasks = chests.tasks("train", 12).tasks
    episodes = [e for e in probe(chests, [t for t in tasks for _ in range(8)], 12, 3) if not e.won]
    for episode in episodes:
        episode.group = tasks.index(episode.task)
    judge = Judge(chests.library)
    batch = credit_batch(episodes, chests, judge, max_steps=12)
    advantage = np.asarray(make("trca")(batch).advantage)
    key = batch.judgement[..., judge.items.index("key_taken")].astype(bool)
    others = (np.arange(12) < batch.length[:, None]) & ~key
    assert key.sum() > 20 and advantage[key].mean() > 0.2 > advantage[others].mean() + 0.2
    assert (np.asarray(make("grpo")(batch).advantage) == 0).all()


def test_a_policy_is_trained_on_it(chests, commands, tmp_path):
    words = f"{chests.vocabulary()} you are study drawer chest chests key locked three unlock"
    model = write_small_model(tmp_path / "model", words=words)
    fields = {name: value for name, value in SMALL.items() if name != "env.task_types"}
    fields |= {"agent.model": model, "workdir": tmp_path / "run", "iterations": 1, "warmstart.steps": 0, "env.games": 4}
    arguments = ["--config=notebooks/chests/config.py", *(f"--config.{name}={value}" for name, value in fields.items())]
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(train.main, *arguments) == 0
    (first, trained, last) = read_metrics(tmp_path / "run")
    assert (first["kind"], trained["kind"], last["kind"]) == ("eval", "train", "eval")
    assert trained["failures"] == 0 and trained["grad_norm"] > 0 and trained["useful"] > 0
    assert set(trained["items"]) == set(Judge(chests.library).items)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["training"]["tasks"] == 4
    assert "chest" in out.getvalue()

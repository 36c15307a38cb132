"""The evaluation that commands share: how its tokens are drawn."""

import json
from types import SimpleNamespace

import pytest

from configs import common
from launch.evaluation import Evaluator
from trca_jax.envs.base import Task, TaskSet
from trca_jax.policy.decoding import Decoding
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.store import read_episodes

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
TASKS = TaskSet(tuple(Task(name, "made up", f"do {name}", "", None) for name in "ab"), "nowhere", "valid_unseen", "0",
                {"corpus": "small"})  # fmt: skip
WORLD = SimpleNamespace(tasks=lambda *_: TASKS, pool=SimpleNamespace(slots=3))
DISPLAY = SimpleNamespace(phase=lambda _: None, message=lambda _: None)


def evaluated(folder, cut="", display=DISPLAY, **settings):
    """What the collector was told, and the record."""
    config, told = common.get_config(), []
    config.ppo.temperature = 0.8
    config.eval.update(settings)

    def collector(params, tasks, groups, key, on_turn, *, first, decoding):
        told.append(decoding)
        return [
            Episode(task, group, "append", won=True, truncated=task.id == cut)
            for task, group in zip(tasks, groups, strict=True)
        ]

    record = Evaluator(config, WORLD, None).run(collector, None, folder, 0, display)
    assert json.loads((folder / "evaluation-0.json").read_text())["top_p"] == record["top_p"]
    return told, record


def test_tokens_are_drawn_as_in_training_unless_the_config_says_otherwise(tmp_path):
    told, record = evaluated(tmp_path)
    assert told == [Decoding(0.8)]
    assert (record["temperature"], record["top_p"], record["top_k"]) == (0.8, 1.0, 0)
    told, record = evaluated(tmp_path, temperature=0.0)
    assert told == [Decoding(0.0)] and record["temperature"] == 0
    told, record = evaluated(tmp_path, temperature=0.4, top_p=0.9, top_k=20)
    assert told == [Decoding(0.4, 0.9, 20)]
    assert (record["temperature"], record["top_p"], record["top_k"]) == (0.4, 0.9, 20)


def test_the_episodes_are_kept_in_the_order_of_the_results(tmp_path):
    """Three at a time of two tasks with two repeats; the group of an episode numbers its task."""
    told, _ = evaluated(tmp_path, repeats=2)
    results = json.loads((tmp_path / "evaluation-0.json").read_text())["results"]
    episodes = read_episodes(tmp_path / "evaluation-0.npz")
    assert len(told) == 2 and [e.task.id for e in episodes] == [r["task"] for r in results] == ["a", "a", "b", "b"]
    assert [e.group for e in episodes] == [0, 0, 1, 1] and episodes[2].task.instruction == "do b"


def test_the_file_says_what_the_results_depend_on(tmp_path):
    evaluated(tmp_path, temperature=0.0)
    found = json.loads((tmp_path / "evaluation-0.json").read_text())
    assert found["data"] == {
        "split": "valid_unseen", "tasks": 2, "source": "nowhere", "sha256": "0", "world": {"corpus": "small"}
    }  # fmt: skip
    assert [(row["kind"], row["episodes"], row["success"], row["high"]) for row in found["kinds"]] == [
        ("", 2, 1.0, 1.0), ("all", 2, 1.0, 1.0),
    ]  # fmt: skip
    assert found["kinds"][0]["low"] == pytest.approx(0.342, abs=1e-3) and found["success_macro"] == 1.0


def test_episodes_without_room_are_counted_and_said(tmp_path):
    said = []
    display = SimpleNamespace(phase=lambda _: None, message=said.append)
    evaluated(tmp_path, cut="a", display=display, repeats=2)
    assert json.loads((tmp_path / "evaluation-0.json").read_text())["cut_short"] == 2
    assert said[0].startswith("2 of 4 episodes ended early: no room") and len(said) == 2
    evaluated(tmp_path, display=display)
    assert json.loads((tmp_path / "evaluation-0.json").read_text())["cut_short"] == 0 and len(said) == 3


def test_a_way_to_draw_that_there_is_not_is_refused_before_anything_is_played(tmp_path):
    with pytest.raises(ValueError, match="temperature 0 takes the likeliest token; leave top_p at 1"):
        evaluated(tmp_path, temperature=0.0, top_p=0.5)
    with pytest.raises(ValueError, match=r"top_p 2\.0 must be above 0 and at most 1"):
        evaluated(tmp_path, top_p=2.0)


def test_a_configs_own_json_reads_the_same():
    """An unset temperature is none, in the record of a run too."""
    assert json.loads(common.get_config().to_json())["eval"]["temperature"] is None

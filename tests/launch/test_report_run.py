"""launch/report.py on a run folder written by hand: two files of rollouts, two evaluations and the metrics."""

import json
import re
import shutil

import numpy as np
import pytest

from launch import report
from trca_jax.envs.alfworld import Alfworld
from trca_jax.envs.base import Task
from trca_jax.learner.record import open_run, write_json
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.store import read_episodes, write_episodes

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
FIRST = (
    "You are in the middle of a room. Looking quickly around you, you see a bed 1, and a desk 1.\n\n"
    "Your task is to: put a cd in desk."
)
BED = ("go to bed 1", "You arrive at bed 1. On the bed 1, you see a cd 1.")
TAKE = ("take cd 1 from bed 1", "You pick up the cd 1 from the bed 1.")
DESK = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see nothing.")
PUT = ("move cd 1 to desk 1", "You move the cd 1 to the desk 1.")
LOST = ("jump", "Nothing happens.")


def episode(*moves, group=0, kind="pick_and_place_simple"):
    blank, steps, won = np.zeros(0, np.int32), [], moves[-1] is PUT
    for action, answer in moves:
        before = steps[-1].after if steps else FIRST
        steps.append(Step(blank, blank, blank, None, action, (0, 0), before, (), answer, float(answer is PUT[1])))
    task = Task(f"task-{group}", "alfworld", "put a cd in desk.", kind, None)
    return Episode(task, group, "append", FIRST, steps, won=won, truncated=not won)


@pytest.fixture(scope="module")
def original(commands, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported") / "mine"
    config = commands.config(folder)
    open_run(folder, config, {"rubric": Alfworld().library.fingerprint, "weights": "w"})
    metrics = []
    for iteration in range(2):
        group = [episode(BED, TAKE, DESK, PUT), episode(DESK, LOST, DESK, BED, LOST)]
        write_episodes(folder / f"rollouts-{iteration}.npz", group)
        metrics.append({"kind": "train", "iteration": iteration, "rollouts": 4 * (iteration + 1), "success": 0.5,
                        "useful": 0.25, "items": {"refused": 0.5}})  # fmt: skip
    for iteration, moves in ((0, (LOST,)), (2, (BED, TAKE, DESK, PUT))):
        write_episodes(folder / f"evaluation-{iteration}.npz", [episode(*moves)])
        won = moves[-1] is PUT
        result = {"task": "t", "kind": "pick", "won": won, "score": float(won), "steps": 4, "failure": None}
        write_json(folder / f"evaluation-{iteration}.json",
                   {"iteration": iteration, "rollouts": 4 * iteration, "success": float(won), "low": 0.0, "high": 1.0,
                    "episodes": 1, "split": "valid_unseen", "results": [result]})  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in metrics))
    return folder


@pytest.fixture
def folder(original, tmp_path):
    shutil.copytree(original, tmp_path / "mine")
    return tmp_path / "mine"


def read(folder):
    text = (folder / "report.html").read_text("utf-8")
    return text, json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_a_run_is_reported_in_one_file(commands, folder, capsys):
    assert commands.call(report.main, f"--run={folder}") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "report.html: 0.1 MB, 6 of 6 episodes" in out or "report.html: 0.0 MB, 6 of 6 episodes" in out
    text, data = read(folder)
    assert [(f["key"], f["label"]) for f in data["files"]] == [
        ("rollouts-1", "training, after 1 iteration"), ("rollouts-0", "training, start"),
        ("evaluation-2", "held out, after 2 iterations"), ("evaluation-0", "held out, start"),
    ]  # fmt: skip
    assert "alfworld · trca" in text and '</header><p class="note">' not in text
    assert not list(folder.glob("*.part"))
    (group,) = data["files"][0]["groups"]
    assert data["files"][0]["credited"] and data["files"][0]["rubric"]
    won, lost = group["rollouts"]
    names = [item["name"] for item in data["items"]]
    fired = [{names[j] for j in step[5]} for step in won["steps"]]
    assert "target_seen[0]" in fired[0] and "target_taken[0]" in fired[1] and "target_placed[0]" in fired[3]
    assert [{names[j] for j in step[5]} & {"refused"} for step in lost["steps"]] == [
        set(),
        {"refused"},
        set(),
        set(),
        {"refused"},
    ]
    # Half of the group was won: A_E is ±1/√2 up to eps, as the deviation divides by n−1. r_env stands at the end.
    assert [won["episode"], lost["episode"]] == pytest.approx([0.5**0.5, -(0.5**0.5)], abs=1e-3)
    assert [step[8] for step in won["steps"]] == [0, 0, 0, 1]
    # Both began in one context, where the one that won has the larger return.
    assert won["steps"][0][3] == lost["steps"][0][3] and won["steps"][0][10] > 0 > lost["steps"][0][10]
    place = won["steps"][0][4]
    assert re.fullmatch(r"progress .* · holding nothing · target_state .* · stage find", data["texts"][place])


def test_a_method_without_a_rubric_and_one_whose_signals_are_missing(commands, folder):
    def with_method(name):
        record = json.loads((folder / "run.json").read_text())
        record["config"]["method"] = name
        write_json(folder / "run.json", record)
        assert commands.call(report.main, f"--run={folder}") == 0
        return read(folder)

    text, data = with_method("grpo")
    (group,) = data["files"][0]["groups"]
    assert data["files"][0]["credited"] and not data["files"][0]["rubric"] and group["rollouts"][0]["episode"] > 0
    assert {step[4] for step in group["rollouts"][0]["steps"]} == {-1}  # an observation is the context
    text, data = with_method("hcapo")
    assert not any(f["credited"] for f in data["files"]) and "The credit of some files is not known" in text


def test_a_changed_rubric_is_told(commands, folder):
    record = json.loads((folder / "run.json").read_text()) | {"rubric": "another"}
    write_json(folder / "run.json", record)
    assert commands.call(report.main, f"--run={folder}") == 0
    assert "The rubric has changed since this run" in read(folder)[0]


def test_what_does_not_fit_is_counted(commands, folder, monkeypatch):
    monkeypatch.setattr(report, "BUDGET", 2500)
    assert commands.call(report.main, f"--run={folder}") == 0
    text, data = read(folder)
    shown = sum(len(f["groups"]) for f in data["files"])
    assert 0 < shown < 4 and f"{4 - shown} of 4 groups were left out" in text


def test_bad_folders_are_told_in_one_line_and_leave_the_old_page(commands, folder, capsys):
    (folder / "report.html").write_text("old")

    def error(change):
        change()
        assert commands.call(report.main, f"--run={folder}") == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert (folder / "report.html").read_text() == "old"
        return line

    whole = (folder / "rollouts-1.npz").read_bytes()
    half = lambda name, size: (folder / name).write_bytes((folder / name).read_bytes()[:size])  # noqa: E731
    assert "rollouts-1.npz holds no readable episodes" in error(lambda: half("rollouts-1.npz", 300))
    (folder / "rollouts-1.npz").write_bytes(whole)
    long = read_episodes(folder / "rollouts-1.npz")
    long[0].steps *= 2
    fit = "rollouts-1.npz does not fit this run (episode 0 has 8 steps, max_steps is 5; raise it)"
    assert fit in error(lambda: write_episodes(folder / "rollouts-1.npz", long))
    (folder / "rollouts-1.npz").write_bytes(whole)
    assert "evaluation-2.json is damaged" in error(lambda: half("evaluation-2.json", 100))
    (folder / "evaluation-2.json").unlink()
    record = json.loads((folder / "run.json").read_text())
    old = json.loads(json.dumps(record))
    del old["config"]["env"]["max_steps"]
    assert "has no field 'env.max_steps'" in error(lambda: write_json(folder / "run.json", old))
    assert "run.json is damaged" in error(lambda: half("run.json", 50))
    write_json(folder / "run.json", record)
    for path in {*folder.glob("*.npz"), *folder.glob("evaluation*"), folder / "metrics.jsonl"}:
        path.unlink()
    assert "has no metrics and no episodes yet" in error(lambda: None)


def test_a_run_must_be_named(commands, tmp_path, capsys):
    assert commands.call(report.main) == 2 and "--run is missing" in capsys.readouterr().err
    assert commands.call(report.main, f"--run={tmp_path}") == 2 and "is no run folder" in capsys.readouterr().err

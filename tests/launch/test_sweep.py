"""A grid of runs: what its cells are, that what is finished is kept, and what is refused before anything starts."""

import fcntl
import io
import json
import os
import signal
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from commands import SMALL
from run_folders import write_run

from configs.ablations import advantage, budgets, context, grid, invalidity, judge, methods, rewards
from launch import sweep
from launch.cells import cells
from trca_jax.credit import METHODS
from trca_jax.evaluation.efficiency import curves
from trca_jax.evaluation.results import read_results
from trca_jax.learner.record import write_json

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
CONFIG = "--config=configs/ablations/rewards.py"
SETTINGS = ("both", "without_r_F", "without_r_B", "neither")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A sweep whose runs are prepared by hand and only copied: its folder, and that of the prepared runs."""
    prepared, root = tmp_path / "prepared", tmp_path / "sweep"
    prepared.mkdir()
    monkeypatch.setenv("FAKE_RUNS", str(prepared))
    monkeypatch.setattr(sweep, "_TRAIN", Path(__file__).with_name("fake_train.py"))
    monkeypatch.setattr(sweep, "_LOOK_S", 0.02)
    config = rewards.get_config()
    config.update_from_flattened_dict({"workdir": str(root), "iterations": 1, "sweep.seeds": (0,)})
    for cell in cells(config):
        folder = write_run(prepared / cell.folder.name, "trca", [(0, {"heat": "00"}), (1, {"heat": "01"})], [0.1])
        write_json(folder / "run.json", {"config": json.loads(cell.config.to_json()), "weights": "w"})
    return root, prepared


def call(commands, root, *more, iterations=1):
    """Exit code and output of the sweep."""
    arguments = (CONFIG, f"--config.workdir={root}", f"--config.iterations={iterations}", "--config.sweep.seeds=(0,)")
    with redirect_stdout(io.StringIO()) as out:
        code = commands.call(sweep.main, *arguments, *more)
    return code, out.getvalue()


def started(prepared):
    path = prepared / "started"
    names = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return names


def test_every_cell_runs_once_and_is_kept(commands, place):
    root, prepared = place
    code, out = call(commands, root)
    assert code == 0 and "4 runs" in out and "0 of them finished" in out
    assert started(prepared) == [f"trca-{name}-0" for name in SETTINGS]
    rows = read_results(root / "results.jsonl")
    assert [(r["setting"], r["rollouts"], r["success"]) for r in rows[:3]] == [
        ("both", 0, 0.0), ("both", 4, 0.5), ("without r_F", 0, 0.0)
    ]  # fmt: skip
    assert len(rows) == 8 and set(curves(rows)) == {"both", "without r_F", "without r_B", "neither"}
    code, out = call(commands, root)
    assert code == 0 and "4 of them finished" in out and started(prepared) == []


@pytest.mark.parametrize("damage", [b'{"method": "trca", "set', b"\0" * 9, None], ids=["cut off", "zeros", "gone"])
def test_a_damaged_file_of_results_is_made_anew(commands, place, damage):
    root, prepared = place
    call(commands, root)
    path, started_before = root / "results.jsonl", started(prepared)
    whole = path.read_bytes()
    path.unlink() if damage is None else path.write_bytes(whole[:200] + damage)
    assert call(commands, root)[0] == 0
    assert path.read_bytes() == whole and started(prepared) == [] and len(started_before) == 4


def test_a_run_that_fails_holds_up_no_other(commands, place):
    root, prepared = place
    (prepared / "trca-without_r_F-0.fails").touch()
    code, out = call(commands, root, "--jobs=2")
    assert code == 2 and len(started(prepared)) == 4
    assert "failed    trca-without_r_F-0: error: no room on the disk" in out
    assert {row["setting"] for row in read_results(root / "results.jsonl")} == {"both", "without r_B", "neither"}
    (prepared / "trca-without_r_F-0.fails").unlink()
    assert call(commands, root)[0] == 0 and started(prepared) == ["trca-without_r_F-0"]


def test_ctrl_c_ends_the_runs_and_keeps_what_is_finished(commands, place):
    root, prepared = place

    def press():
        while not (prepared / "started").exists() or len((prepared / "started").read_text().split()) < 2:
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    (prepared / "hold").touch()
    thread = threading.Thread(target=press)
    thread.start()
    code, out = call(commands, root, "--jobs", "2")
    thread.join()
    assert code == 130 and "Stopped, all saved" in out and out.count("stopped   trca-") == 2
    assert sorted(started(prepared)) == ["trca-both-0", "trca-without_r_F-0"]
    (prepared / "hold").unlink()
    assert call(commands, root)[0] == 0 and len(started(prepared)) == 4


def test_a_run_that_is_still_going_on_is_not_started_twice(commands, place, capfd):
    root, prepared = place
    root.mkdir()
    with (root / "trca-both-0.log").open("a") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # as its process would, which a killed sweep leaves behind
        assert call(commands, root)[0] == 2
    assert "trca-both-0 is still being run" in capfd.readouterr().err and started(prepared) == []
    assert call(commands, root)[0] == 0


def test_more_iterations_and_seeds_add_to_what_is_there(commands, place):
    root, prepared = place
    call(commands, root)
    started(prepared)
    call(commands, root, iterations=2)  # not finished by the prepared runs, but each is asked to go on
    assert len(started(prepared)) == 4
    call(commands, root, "--config.sweep.seeds=(7,)")  # there is nothing prepared, so they fail
    assert len(started(prepared)) == 4
    assert len(read_results(root / "results.jsonl")) == 8


def test_another_run_in_the_place_of_a_cell_is_refused_before_anything_runs(commands, place, capfd):
    root, prepared = place
    call(commands, root)
    started(prepared)
    (root / "trca-both-0" / "metrics.jsonl").unlink()
    assert call(commands, root, "--config.ppo.lr=0.5")[0] == 2
    assert "trca-both-0 holds a run with config.ppo.lr = 0.0004, but this one has 0.5" in capfd.readouterr().err
    assert started(prepared) == []


BAD = {
    "no grid": (["--config=configs/alfworld.py"], "the config has no grid"),
    "no such base": (["--config=configs/ablations/lambda.py:mars"], "there is no config 'mars'"),
    "no such module": (["--config=configs/ablations/lambda.py:mars.config"], "there is no config 'mars.config'"),
    "no judge": (
        ["--config=configs/ablations/judge.py"],
        "cell 'prm-0' of the grid: config.method 'prm' needs a language model that scores transitions",
    ),
    "no seeds": (["--config.sweep.seeds=()"], "the grid is empty"),
    "a seed twice": (["--config.sweep.seeds=(1,1)"], "two cells of the grid would be 'trca-both-1'"),
    "no seed": (["--config.sweep.seeds=('a',)"], "seed 'a'"),
    "unknown method": (["--config.sweep.methods=('guess',)"], "cell 'guess-both-0' of the grid: config.method 'guess'"),
    "no jobs": (["--jobs=0"], "jobs"),
    "unknown field": (["--config.sweep.settings=(('x',(('ppo.rate',1),)),)"], "the config has no field 'ppo.rate'"),
    "a section": (["--config.sweep.settings=(('x',(('ppo',1),)),)"], "cell 'trca-x-0' of the grid"),
    "bad value": (["--config.sweep.settings=(('x',(('credit.trca.lam',2.0),)),)"], "lam is 2.0"),
    "bad type": (["--config.sweep.settings=(('x',(('iterations','many'),)),)"], "cell 'trca-x-0'"),
    "bad shape": (["--config.sweep.settings=('x',)"], "expected settings (name, ((field, value), ...))"),
    "unknown context": (
        ["--config.sweep.settings=(('x',(('env.rubric.context',('room',)),)),)"],
        "context field 'room' of alfworld is unknown, expected progress",
    ),
    "unknown operator": (["--config.env.rubric.without=('nothing',)"], "operator 'nothing' of alfworld is unknown"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_grid_that_cannot_be_run_is_told_in_one_line(case, commands, tmp_path, capfd):
    arguments, says = BAD[case]
    root = tmp_path / "sweep"
    arguments = arguments if any(a.startswith("--config=") for a in arguments) else [CONFIG, *arguments]
    assert commands.call(sweep.main, *arguments, f"--config.workdir={root}") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ") and says in line
    assert not root.exists()


@pytest.mark.parametrize("ablation", [advantage, budgets, context, invalidity, methods, rewards])
@pytest.mark.parametrize("base", ["alfworld", "alfworld:qwen2.5-1.5b"])
def test_every_ablation_is_a_grid_of_runs_that_differ(ablation, base):
    config = ablation.get_config(base)
    found = cells(config)
    assert len(found) == 3 * len(config.sweep.settings) * len(config.sweep.methods)
    places = ("workdir", "sweep", "seed")
    configs = [{k: v for k, v in json.loads(c.config.to_json()).items() if k not in places} for c in found]
    distinct = {json.dumps(c, sort_keys=True) for c in configs}
    assert len(distinct) == len(found) / 3
    assert config.env.max_steps == 25 and config.eval.every == 5


def test_the_grid_of_methods_compares_what_alfworld_can_offer_at_the_published_budgets():
    c = methods.get_config()
    elsewhere = {"gold_logp", "golden_similarity", "step_score"}  # answers, documents, a language model
    assert set(methods.METHODS) == {name for name, method in METHODS.items() if not elsewhere & method.needs}
    rollouts = [i * c.tasks * c.group_size for i in range(0, c.iterations + 1, c.eval.every)]
    assert {1920, 3840, 6400} <= set(rollouts)


def test_the_grid_of_judges_differs_in_the_reward_alone():
    c = judge.get_config()
    c.judge.endpoint, c.judge.model, c.sweep.seeds = "http://localhost:8000/v1", "m", (0,)
    rubric, model = (json.loads(cell.config.to_json()) for cell in cells(c))
    assert {name for name in rubric if rubric[name] != model[name]} == {"method", "workdir"}


def test_a_task_type_may_have_runs_of_its_own():
    c = grid.grid("alfworld", "types", {"": {}})
    c.sweep.task_types, c.sweep.seeds = ("pick_two_obj_and_place", "look_at_obj_in_light"), (3,)
    found = cells(c)
    assert [cell.folder.name for cell in found] == ["trca-pick_two_obj_and_place-3", "trca-look_at_obj_in_light-3"]
    assert [tuple(cell.config.env.task_types) for cell in found] == [(name,) for name in c.sweep.task_types]
    assert "--config.env.task_types=('pick_two_obj_and_place',)" in found[0].arguments()


def test_real_runs_go_into_one_file(commands, tmp_path):
    fields = SMALL | {"workdir": tmp_path / "sweep", "agent.model": commands.model, "iterations": 1, "eval.every": 1}
    settings = "--config.sweep.settings=(('a',(('credit.trca.lam',0.0),)),('b',(('env.rubric.context',('stage',)),)))"
    arguments = [CONFIG, *(f"--config.{name}={value}" for name, value in fields.items()), settings]
    process = commands.start("sweep.py", *arguments, "--config.sweep.seeds=(5,)")
    out, err = process.communicate(timeout=1200)
    logs = [path.read_text() for path in (tmp_path / "sweep").glob("*.log")]
    assert process.returncode == 0, (out, err, logs)
    rows = read_results(tmp_path / "sweep" / "results.jsonl")
    assert {(r["setting"], r["seed"], r["iteration"]) for r in rows} == {
        (name, 5, i) for name in ("a", "b") for i in (0, 1)
    }
    assert all(r["useful"] > 0 for r in rows if r["iteration"] == 1 and r["kind"] == "all")
    run = json.loads((tmp_path / "sweep" / "trca-b-5" / "run.json").read_text())["config"]
    assert run["env"]["rubric"]["context"] == ["stage"] and run["seed"] == 5 and run["credit"]["trca"]["lam"] == 0.8

"""Whole runs: what they write, and that neither kill -9, Ctrl-C nor another config can spoil them."""

import io
import json
import os
import random
import shutil
import signal
import struct
import time
from contextlib import redirect_stdout
from importlib.metadata import version

import jax
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

from launch import train
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.metrics import read_metrics
from trca_jax.learner.rollouts import judged, recredited
from trca_jax.learner.state import new_state, optimizer
from trca_jax.policy.load import load_policy
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.store import read_episodes
from trca_jax.rollout.world import benchmark_of
from trca_jax.rubrics.language import Judge

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
LONG = 10  # iterations: long enough to be killed in the middle


@pytest.fixture(scope="module")
def whole(commands, tmp_path_factory):
    """A run that nothing has interrupted, and what it printed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(train.main, *commands.arguments(folder, iterations=LONG)) == 0
    return folder, out.getvalue()


def checkpoint(commands, folder):
    """Iterations, policy, optimizer state and reference of the last checkpoint."""
    params = load_policy(str(commands.model)).params
    p = commands.config(folder).ppo
    tx = optimizer(lr=p.lr, warmup=p.warmup, weight_decay=p.weight_decay, clip_norm=p.clip_norm, b2=p.b2)
    checkpoints = Checkpoints(folder, 2)
    state, reference = checkpoints.restore(new_state(params, tx), params)
    found = checkpoints.latest(), jax.device_get((state, reference))
    checkpoints.close()
    return found


def records(folder):
    return [{k: v for k, v in record.items() if k not in ("seconds", "speed")} for record in read_metrics(folder)]


def scalars(folder):
    """What TensorBoard shows: {(tag, step): value}, a restart hides what was drawn at its step and later."""
    shown = {}
    for path in sorted((folder / "tensorboard").iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += size + 16
            if event.session_log.status == 1:  # START
                shown = {key: value for key, value in shown.items() if key[1] < event.step}
            shown |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
    return shown


def assert_same_run(commands, folder, other):
    (done, arrays), (expected_done, expected) = checkpoint(commands, folder), checkpoint(commands, other)
    assert done == expected_done
    assert jax.tree.structure(arrays) == jax.tree.structure(expected)
    for (path, got), want in zip(jax.tree_util.tree_leaves_with_path(arrays), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(got, want, err_msg=jax.tree_util.keystr(path))
    assert records(folder) == records(other)
    timeless = lambda shown: {  # noqa: E731
        key: value for key, value in shown.items() if not {"seconds", "speed"} & set(key[0].split("/"))
    }
    assert timeless(scalars(folder)) == timeless(scalars(other))
    for name in (*(f"evaluation-{n}.json" for n in (0, done)), "rollouts-0.npz"):
        assert (folder / name).read_bytes() == (other / name).read_bytes()


def test_a_run_learns_and_leaves_all_that_is_needed_to_understand_it(commands, whole):
    folder, out = whole
    run = json.loads((folder / "run.json").read_text())
    assert run["config"]["agent"]["decode"] == "admissible" and run["config"]["seed"] == 0
    assert run["training"]["source"] == "generator version 1, seed 0" and run["training"]["tasks"] == 2
    assert run["evaluation"]["split"] == "valid_unseen" and run["evaluation"]["tasks"] == 2
    assert run["training"]["sha256"] != run["evaluation"]["sha256"]
    assert all(len(run[name]) == 64 for name in ("rubric", "weights")) and len(run["training"]["sha256"]) == 64
    assert run["versions"]["jax"] == version("jax")

    found = read_metrics(folder)
    trained = [r for r in found if r["kind"] == "train"]
    assert [(r["kind"], r["iteration"]) for r in found] == [
        ("eval", 0), *(("train", i) for i in range(LONG)), ("eval", LONG)
    ]  # fmt: skip
    assert [r["rollouts"] for r in trained] == [4 * (i + 1) for i in range(LONG)]
    assert all(r["grad_norm"] > 0 and r["valid"] == 1.0 and r["failures"] == 0 for r in trained)
    assert abs(trained[0]["kl"]) < 1e-4 < trained[-1]["kl"]  # the policy has left the reference
    shown = scalars(folder)
    assert shown["train/entropy", 3] == pytest.approx(trained[3]["entropy"], rel=1e-6)
    assert shown["eval/success", LONG] == pytest.approx(found[-1]["success"])

    for n in (0, LONG):
        evaluation = json.loads((folder / f"evaluation-{n}.json").read_text())
        assert len({r["task"] for r in evaluation["results"]}) == evaluation["episodes"] == 2
        assert evaluation["decode"] == "admissible" and evaluation["rollouts"] == 4 * n
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert f"iteration {LONG}/{LONG}" in out and "held out" in out and "pick_and_place_simple" in out
    done, (state, reference) = checkpoint(commands, folder)
    assert done == LONG and state.updates == 2 * LONG  # two minibatches an iteration
    jax.tree.map(np.testing.assert_array_equal, reference, load_policy(str(commands.model)).params)


def test_the_rollouts_of_some_iterations_are_kept_and_give_their_credit_again(commands, whole):
    folder, _ = whole
    assert sorted(path.name for path in folder.glob("rollouts*")) == ["rollouts-0.npz", f"rollouts-{LONG - 1}.npz"]
    config = commands.config(folder)
    benchmark = benchmark_of(config.env)
    trained = [r for r in read_metrics(folder) if r["kind"] == "train"]
    for iteration in (0, LONG - 1):
        episodes = read_episodes(folder / f"rollouts-{iteration}.npz")
        batch = judged(config, benchmark, Judge(benchmark.library), episodes)
        found = recredited(config, batch, {})
        assert [e.group for e in episodes] == [0, 0, 1, 1]
        assert np.mean([len(e.steps) for e in episodes]) == trained[iteration]["steps"]
        assert found.foundational.sum() / 4 == pytest.approx(trained[iteration]["foundational"], rel=1e-5)


def test_after_kill_9_the_same_command_continues_bit_for_bit(commands, whole, tmp_path):
    folder, chance = tmp_path / "run", random.SystemRandom()
    saved, delay = chance.randint(1, LONG - 3), chance.uniform(0, 0.1)
    arguments = commands.arguments(folder, iterations=LONG)
    process = commands.start("train.py", *arguments)
    while not (folder / "checkpoints" / str(saved)).exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    time.sleep(delay)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, (saved, delay)
    again = commands.start("train.py", *arguments)
    out, err = again.communicate(timeout=1200)
    assert again.returncode == 0, (saved, delay, err)
    assert "continuing after iteration" in out
    assert_same_run(commands, folder, whole[0])


def test_ctrl_c_saves_and_the_same_command_continues(commands, whole, tmp_path):
    folder = tmp_path / "run"
    seldom = {"checkpoint__every": 1000}
    process = commands.start("train.py", *commands.arguments(folder, iterations=100_000, **seldom))
    for line in process.stdout:
        if line.startswith("iteration 2/"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 130 and err == ""
    done = checkpoint(commands, folder)[0]
    assert done >= 2
    assert out.splitlines()[-1] == f"Stopped after {done} iterations, all saved; run the same command to go on."
    assert [r["iteration"] for r in read_metrics(folder)[1:]] == list(range(done))
    assert records(folder)[1 : LONG + 1] == records(whole[0])[1 : min(done, LONG) + 1]
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(train.main, *commands.arguments(folder, iterations=done + 1, **seldom)) == 0
    assert f"continuing after iteration {done}" in out.getvalue()
    assert [r["iteration"] for r in read_metrics(folder)[1:]] == [*range(done + 1), done + 1]


def test_ctrl_c_while_games_are_prepared_ends_every_process(commands, tmp_path, monkeypatch):
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path / "cache"))
    arguments = commands.arguments(tmp_path / "run", env__games=60)
    process = commands.start("train.py", *arguments, start_new_session=True)
    while not list((tmp_path / "cache").rglob("*.z")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=1200)  # until the last process has closed its output
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped" and "spawn_main" not in err and "concurrent" not in err
    assert not (tmp_path / "run").exists()


def test_ctrl_c_in_an_evaluation_is_heard_at_once(commands, tmp_path, monkeypatch, capsys):
    folder, play, turns = tmp_path / "run", Collector.__call__, []

    def interrupted(self, params, tasks, groups, key, on_turn, **more):
        def press(turn, live):
            turns.append(turn)
            os.kill(os.getpid(), signal.SIGINT)
            on_turn(turn, live)

        return play(self, params, tasks, groups, key, press, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Collector, "__call__", interrupted)
        assert commands.call(train.main, *commands.arguments(folder, iterations=1)) == 130
    assert turns == [1] and "Stopped after 0 iterations, all saved" in capsys.readouterr().out
    assert read_metrics(folder) == []
    assert commands.call(train.main, *commands.arguments(folder, iterations=1)) == 0
    assert [(r["kind"], r["iteration"]) for r in read_metrics(folder)] == [("eval", 0), ("train", 0), ("eval", 1)]


def test_another_config_in_the_same_folder_is_refused_and_changes_nothing(commands, whole, capfd):
    folder, _ = whole
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    for changed, names in (
        ({"method": "grpo"}, ("config.method = 'trca'", "'grpo'")),
        ({"ppo__lr": 0.1}, ("config.ppo.lr = 0.0003", "0.1")),
        ({"env__games": 4}, ("config.env.games = 2", "4")),
    ):
        capfd.readouterr()
        assert commands.call(train.main, *commands.arguments(folder, **{"iterations": LONG, **changed})) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"error: {folder} holds a run with") and all(name in line for name in names)
        assert "--config.workdir" in line
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def test_a_finished_run_is_shown_again_and_may_grow(commands, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(train.main, *commands.arguments(folder, iterations=LONG)) == 0
    assert_same_run(commands, folder, whole[0])
    assert "pick_and_place_simple" in out.getvalue()

    # How it is evaluated may change; then it is evaluated anew, and the earlier figures stay.
    grown = commands.arguments(folder, iterations=LONG + 1, eval__games=3, checkpoint__keep=1)
    with redirect_stdout(io.StringIO()):
        assert commands.call(train.main, *grown) == 0
    assert records(folder)[: LONG + 2] == records(whole[0])
    assert [(r["kind"], r["iteration"]) for r in records(folder)[LONG + 2 :]] == [("train", LONG), ("eval", LONG + 1)]
    assert records(folder)[-1]["episodes"] == 3
    assert checkpoint(commands, folder)[0] == LONG + 1

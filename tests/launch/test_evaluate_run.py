"""launch/evaluate.py: the evaluation of a run, again."""

import io
import json
import shutil
import zlib
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from launch import evaluate, train
from trca_jax.policy.hf import read_model, write_model
from trca_jax.policy.load import load_policy
from trca_jax.rollout.collect import Collector

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections


@pytest.fixture(scope="module")
def watched():
    """What the collector was asked and answered, as (params, episodes); whether an episode was won is made a function
    of its actions, as a random policy wins nothing."""
    calls, play = [], Collector.__call__

    def watch(self, params, *arguments, **more):
        episodes = play(self, params, *arguments, **more)
        for episode in episodes:
            episode.won = zlib.crc32(" ".join(step.action for step in episode.steps).encode()) % 2 == 0
        calls.append((params, episodes))
        return episodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Collector, "__call__", watch)
        yield calls


@pytest.fixture(scope="module")
def finished(commands, tmp_path_factory, watched):
    folder = tmp_path_factory.mktemp("finished") / "run"
    with redirect_stdout(io.StringIO()) as out:
        arguments = commands.arguments(folder, iterations=1, eval__games=6, eval__repeats=2, ppo__lr=0.05)
        assert commands.call(train.main, *arguments) == 0
    return folder, out.getvalue()


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_repeats_the_final_evaluation_and_changes_nothing(commands, finished, watched):
    folder, out = finished
    before, own = files(folder), watched[-3:]  # 12 episodes, 4 at a time
    del watched[:]
    with redirect_stdout(io.StringIO()) as again:
        assert commands.call(evaluate.main, f"--run={folder}") == 0
    for (_, episodes), (_, expected) in zip(watched, own, strict=True):
        for one, other in zip(episodes, expected, strict=True):
            assert one.task.id == other.task.id
            assert [step.action for step in one.steps] == [step.action for step in other.steps]
            for step, wanted in zip(one.steps, other.steps, strict=True):
                np.testing.assert_array_equal(step.behaviour_logp, wanted.behaviour_logp)
    assert files(folder) == before  # the evaluation's file is written anew, with the same content
    table = out[out.index("task type") : out.index("Learning curve")]
    assert table.strip() == again.getvalue()[again.getvalue().index("task type") :].strip()
    # The evaluation before training is another one, so it is the checkpoint that was evaluated.
    start, end = (json.loads((folder / f"evaluation-{n}.json").read_text()) for n in (0, 1))
    assert [r["won"] for r in start["results"]] != [r["won"] for r in end["results"]]
    assert 0 < end["success"] < 1 and end["success"] == np.mean([r["won"] for r in end["results"]])
    assert f"success {end['success']:.1%}" in again.getvalue()


def test_another_split_or_count_gets_a_file_of_its_own(commands, finished):
    folder, _ = finished
    before = files(folder)
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(evaluate.main, f"--run={folder}", "--split=valid_seen", "--repeats=1") == 0
    after = files(folder)
    new, played = (after.pop(Path(f"evaluation-valid_seen-1-1.{kind}")) for kind in ("json", "npz"))
    assert after == before and played
    record = json.loads(new)
    assert record["split"] == "valid_seen" and record["episodes"] == 6 and "split valid_seen" in out.getvalue()


def test_a_run_without_a_checkpoint_is_evaluated_at_its_start(commands, finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    shutil.rmtree(folder / "checkpoints")
    start = json.loads((folder / "evaluation-0.json").read_text())
    with redirect_stdout(io.StringIO()):
        assert commands.call(evaluate.main, f"--run={folder}") == 0
    assert json.loads((folder / "evaluation-0.json").read_text()) == start


def test_other_weights_than_the_run_began_with_are_refused(commands, finished, tmp_path, capfd):
    model, folder = tmp_path / "model", tmp_path / "run"
    shutil.copytree(commands.model, model)
    shutil.copytree(finished[0], folder)
    (folder / "run.json").write_text((folder / "run.json").read_text().replace(str(commands.model), str(model)))
    size = load_policy(str(model)).config
    params = read_model(model, size)
    params["embedding"] = params["embedding"] + 1
    write_model(model, size, params)
    assert commands.call(evaluate.main, f"--run={folder}") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ") and "put back the model" in line and str(folder) in line


def test_a_run_of_an_older_version_is_refused(commands, finished, tmp_path, capfd):
    record = json.loads((finished[0] / "run.json").read_text())
    del record["config"]["env"]["options"], record["config"]["eval"]
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert commands.call(evaluate.main, f"--run={tmp_path}") == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert f"{tmp_path} was written by an older version: its config has no field 'env.options' (" in line

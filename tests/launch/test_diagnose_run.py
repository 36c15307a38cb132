"""launch/diagnose.py and launch/audit_rubrics.py on the episodes of a small evaluation."""

import io
import json
import shutil
from contextlib import redirect_stdout

import matplotlib.image
import pytest
from chat_server import Bad, serving

from launch import audit_rubrics, diagnose
from trca_jax.evaluation.diagnose import LABELS
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.store import read_episodes

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections


@pytest.fixture(scope="module")
def diagnosed(commands, tmp_path_factory):
    """The folder of an evaluation that a diagnosis has played, and what the diagnosis said."""
    folder = tmp_path_factory.mktemp("diagnosed") / "run"
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(diagnose.main, *commands.arguments(folder, eval__games=3, eval__repeats=2)) == 0
    return folder, out.getvalue()


@pytest.fixture
def nothing_is_played(monkeypatch):
    monkeypatch.setattr(Collector, "__call__", None)


def test_a_model_is_evaluated_once_and_diagnosed(commands, diagnosed, nothing_is_played):
    folder, out = diagnosed
    episodes = read_episodes(folder / "evaluation-0.npz")
    record = json.loads((folder / "diagnosis-evaluation-0.json").read_text())
    row = record["by_rubric"][-1]
    assert (row["rollouts"], row["groups"]) == (len(episodes), 3) == (6, 3)
    assert row["transitions"]["all"]["count"] == sum(len(e.steps) for e in episodes)
    assert sum(record["other_by_item"].values()) == row["transitions"]["all"]["other"]
    assert "rollouts, and groups of one task" in out and "Every group is one rollout" not in out
    assert matplotlib.image.imread(folder / "diagnosis-evaluation-0.png").ndim == 3
    with redirect_stdout(io.StringIO()) as again:
        assert commands.call(diagnose.main, f"--run={folder}") == 0
    assert again.getvalue().splitlines()[:10] == out[out.index("rollouts, and groups") :].splitlines()[:10]
    assert json.loads((folder / "diagnosis-evaluation-0.json").read_text()) == record


def test_other_settings_are_played_anew(commands, tmp_path):
    """The same folder, but one task more: old episodes would be another evaluation's."""
    for games in (1, 2):
        with redirect_stdout(io.StringIO()):
            assert commands.call(diagnose.main, *commands.arguments(tmp_path / "run", eval__games=games)) == 0
        record = json.loads((tmp_path / "run" / "diagnosis-evaluation-0.json").read_text())
        assert record["by_rubric"][-1]["rollouts"] == games


def test_a_model_annotates_and_is_asked_once(commands, diagnosed, nothing_is_played):
    """It calls everything Validity, so it agrees by chance alone: κ is 0."""
    folder, _ = diagnosed

    def answer(body):
        asked = body["messages"][1]["content"]
        assert body["model"] == "judge" and body["messages"][0]["content"].startswith("You label transitions")
        return "\n".join(f"{n}: validity" for n in range(1, asked.count(". action: ") + 1))

    with serving(answer) as server:
        for _ in range(2):
            with redirect_stdout(io.StringIO()) as out:
                found = commands.call(diagnose.main, f"--run={folder}", f"--endpoint={server.url}", "--model=judge")
            assert found == 0 and len(server.seen) == 6  # one an episode; the second time all are in the cache
    record = json.loads((folder / "diagnosis-evaluation-0.json").read_text())
    of = record["by_rubric"][-1]["transitions"]["all"]
    model = record["by_model"][-1]["transitions"]["all"]
    assert model["validity"] == model["count"] == of["count"] and model["useful"] == 1
    assert record["agreement"]["observed"] == of["validity"] / of["count"] and record["agreement"]["kappa"] == 0
    assert [sum(row) for row in record["agreement"]["counts"]] == [of[name] for name in LABELS]
    assert record["usage"]["cached"] == 6 and "Cohen's κ 0.000" in out.getvalue()


def test_a_refusal_is_told_and_the_rubrics_share_is_kept(commands, diagnosed, nothing_is_played, capfd):
    folder, _ = diagnosed
    (folder / "diagnosis-evaluation-0.json").unlink()
    with serving(lambda _: Bad(404, {"error": {"message": "no such model"}})) as server:
        assert commands.call(diagnose.main, f"--run={folder}", f"--endpoint={server.url}", "--model=lost") == 2
    assert "no such model" in capfd.readouterr().err.splitlines()[-1]
    assert "by_rubric" in json.loads((folder / "diagnosis-evaluation-0.json").read_text())
    assert commands.call(diagnose.main, f"--run={folder}", "--endpoint=http://127.0.0.1:9/v1") == 2
    assert "--endpoint and --model go together" in capfd.readouterr().err.splitlines()[-1]


def test_a_damaged_file_is_named(commands, diagnosed, tmp_path, nothing_is_played, capfd):
    folder = tmp_path / "run"
    shutil.copytree(diagnosed[0], folder)
    path = folder / "evaluation-0.npz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for main in (diagnose.main, audit_rubrics.main):
        assert commands.call(main, f"--run={folder}") == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"error: {path} holds no readable episodes") and "delete it" in line


def test_the_audit_of_the_same_episodes(commands, diagnosed, nothing_is_played):
    folder, _ = diagnosed
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(audit_rubrics.main, f"--run={folder}") == 0
    record = json.loads((folder / "audit-evaluation-0.json").read_text())
    episodes = read_episodes(folder / "evaluation-0.npz")
    assert record["episodes"] == 6 and record["transitions"] == sum(len(e.steps) for e in episodes)
    rows = {row["item"]: row for row in record["operators"]}
    assert rows["unparsed"]["never"] and rows["target_seen[1]"]["unbound"] and not rows["target_seen[1]"]["never"]
    assert rows["place_inspected"]["transitions_failed"] > 0 and rows["place_inspected"]["transitions_won"] is None
    assert record["hacking"] is None and "fewer than 8 iterations" in out.getvalue()
    assert sum(spot["count"] for spot in record["blind_spots"]) <= record["silent"] <= record["transitions"]
    for spot in record["blind_spots"]:
        assert spot["count"] <= spot["of"] and spot["action"] and spot["changes"]

"""Training with a language model as process reward model: a run that its endpoint leaves alone for a while goes on as
if nothing had happened, and what was answered is never asked again."""

import io
import json
import zlib
from contextlib import redirect_stdout

import numpy as np
import pytest
from chat_server import Bad, serving

from launch import report, train
from trca_jax.learner.metrics import read_metrics
from trca_jax.rollout.store import read_episodes, read_signals

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
KEY = "sk-verysecret-0123456789"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("TRCA_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def opinion(body):
    """Scores that depend on the text alone; one episode in four gets garbage, twice."""
    text = body["messages"][1]["content"]
    if zlib.crc32(text.encode()) % 4 == 0:
        return "Well done!"
    parts = text.split(". action: ")[1:]
    return "\n".join(f"{n}: {zlib.crc32(part.encode()) % 3 - 1}" for n, part in enumerate(parts, 1))


def arguments(commands, folder, server, **more):
    fields = {
        "method": "prm", "iterations": 2, "eval__games": 1, "judge__endpoint": server.url, "judge__model": "critic",
        "chat__tries": 1, "chat__concurrency": 1, "chat__prices": "(2.5,10.0)", "checkpoint__rollouts": 1,
        "checkpoint__every": 1000,
    }  # fmt: skip
    return commands.arguments(folder, **(fields | more))


def call(commands, *given):
    with redirect_stdout(io.StringIO()) as out:
        code = commands.call(train.main, *given)
    return code, out.getvalue()


def records(folder):
    return [{k: v for k, v in record.items() if k not in ("seconds", "speed")} for record in read_metrics(folder)]


def test_after_an_outage_the_same_command_continues_bit_for_bit(commands, tmp_path, capfd):
    whole, folder = tmp_path / "whole", tmp_path / "run"
    with serving(opinion) as server:
        assert call(commands, *arguments(commands, whole, server))[0] == 0
        asked = [json.dumps(body) for body, _, _ in server.seen]
        assert len(set(asked)) == len(asked)
        train_records = [r for r in read_metrics(whole) if r["kind"] == "train"]
        first, second = (r["judge"]["requests"] for r in train_records)
        assert first + second == len(asked) and second > 1
        server.seen.clear()
        good = iter(range(first + 1))
        server.answer = lambda body: opinion(body) if next(good, None) is not None else Bad(503, {"error": "gone home"})
        assert call(commands, *arguments(commands, folder, server))[0] == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert (
            line.startswith("error: the model 'critic' that scores transitions gives no answer") and "gone home" in line
        )
        assert [r["iteration"] for r in read_metrics(folder) if r["kind"] == "train"] == [0]
        lost = [json.dumps(body) for body, _, _ in server.seen[first + 1 :]]
        server.answer = opinion
        code, out = call(commands, *arguments(commands, folder, server))
        assert code == 0 and "continuing after iteration 1" in out
        again = [json.dumps(body) for body, _, _ in server.seen]
    for once in lost:
        again.remove(once)
    assert sorted(again) == sorted(asked)  # each question that was answered, once
    assert records(folder) == records(whole)
    for ours, theirs in zip(commands.policy(folder), commands.policy(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for name in ("rollouts-0.npz", "rollouts-1.npz", "evaluation-2.json"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert all(KEY.encode() not in path.read_bytes() for path in folder.rglob("*") if path.is_file())

    for iteration, record in enumerate(train_records):
        scores = read_signals(whole / f"rollouts-{iteration}.npz")["step_score"]
        episodes = read_episodes(whole / f"rollouts-{iteration}.npz")
        real = np.arange(scores.shape[1]) < np.array([len(e.steps) for e in episodes])[:, None]
        assert np.isnan(scores[~real]).all() and set(np.unique(scores[real & ~np.isnan(scores)])) <= {-1, 0, 1}
        assert record["unscored"] == pytest.approx(np.isnan(scores[real]).mean())
        assert record["score_mean"] == pytest.approx(np.nanmean(scores[real]))
        took = record["judge"]
        assert took["cost"] == (took["prompt_tokens"] * 2.5 + took["completion_tokens"] * 10) / 1e6 > 0
        assert took["requests"] == took["questions"] + took["unread"]  # the garbage is asked for twice
    assert any(record["unscored"] > 0 for record in train_records)
    with redirect_stdout(io.StringIO()):
        assert commands.call(report.main, f"--run={whole}") == 0


@pytest.mark.parametrize("missing", ["judge__endpoint", "judge__model"])
def test_without_a_model_nothing_is_played(missing, commands, tmp_path, capfd):
    with serving(opinion) as server:
        given = arguments(commands, tmp_path / "run", server, **{missing: ""})
        assert call(commands, *given)[0] == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "needs a language model that scores transitions: give --config.judge.endpoint=URL and" in line
    assert not (tmp_path / "run").exists() and server.seen == []

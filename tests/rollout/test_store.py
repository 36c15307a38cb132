"""Episodes survive the way through bytes; shares cover all rollouts."""

import dataclasses

import jax
import numpy as np
import pytest
from boxes import task
from fake_world import ShortPrompt

from trca_jax.agents.prompts import WordPrompt
from trca_jax.envs.alfworld.brief import brief
from trca_jax.rollout.processes import gather, leads, share
from trca_jax.rollout.store import decode, encode, read_episodes, read_signals, write_episodes

TASKS = [task("a"), task("é", breaks=2), task("b", breaks=0), task("c", "yellow")]


@pytest.mark.parametrize("prompt", [WordPrompt(brief), ShortPrompt()], ids=["append", "stepwise"])
@pytest.mark.parametrize("decode_mode", ["free", "admissible"])
def test_episodes_are_the_same_after_bytes(play, prompt, decode_mode):
    episodes = play(TASKS, prompt=prompt, decode=decode_mode, seed=3)
    assert {e.failure is None for e in episodes} == {True, False} and any(not e.steps for e in episodes)
    again = decode(encode(episodes), TASKS)
    for one, two in zip(episodes, again, strict=True):
        plain = lambda e: {**vars(e), "steps": None}  # noqa: E731
        assert plain(one) == plain(two)
        for s, t in zip(one.steps, two.steps, strict=True):
            for field in dataclasses.fields(s):
                a, b = getattr(s, field.name), getattr(t, field.name)
                if isinstance(a, np.ndarray):
                    np.testing.assert_array_equal(a, b)
                    assert a.dtype == b.dtype
                else:
                    assert a == b and type(a) is type(b), field.name


def test_the_tasks_must_be_as_many(play):
    with pytest.raises(ValueError, match="the archive holds 1 episodes, there are 4 tasks"):
        decode(encode(play(TASKS[:1])), TASKS)


def test_a_file_of_episodes_names_their_tasks_and_nothing_hidden(play, tmp_path):
    episodes = play(TASKS, seed=3)
    write_episodes(tmp_path / "played.npz", episodes)
    assert [path.name for path in tmp_path.iterdir()] == ["played.npz"]
    again = read_episodes(tmp_path / "played.npz")
    assert [e.task for e in again] == [dataclasses.replace(e.task, payload=None) for e in episodes]
    assert again[3].task.instruction == "open the yellow box" and again[3].task.kind == "open"
    assert [[s.after for s in e.steps] for e in again] == [[s.after for s in e.steps] for e in episodes]
    write_episodes(tmp_path / "again.npz", again)
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "played.npz").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "other", "absent"])
def test_a_file_that_holds_no_episodes_is_named(play, tmp_path, damage):
    path = tmp_path / "played.npz"
    write_episodes(path, play(TASKS[:1]))
    if damage == "other":
        np.savez(path, text=np.zeros(3, np.uint8))
    elif damage == "absent":
        path.unlink()
    else:
        path.write_bytes({"cut": path.read_bytes()[:-200], "empty": b"", "text": b"episodes"}[damage])
    with pytest.raises(ValueError, match=r"played\.npz holds no readable episodes .* delete it"):
        read_episodes(path)


def test_arrays_may_stand_beside_the_episodes(play, tmp_path):
    path, episodes = tmp_path / "played.npz", play(TASKS[:1])
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_episodes(path, episodes, {"text": values, "mask": values > 2})
    found = read_signals(path)
    assert list(found) == ["text", "mask"] and found["mask"].dtype == bool
    np.testing.assert_array_equal(found["text"], values)
    assert [e.task.id for e in read_episodes(path)] == ["a"]
    write_episodes(path, episodes)
    assert read_signals(path) == {}
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"played\.npz holds no readable arrays"):
        read_signals(path)


def test_one_process_has_everything():
    assert share(6) == range(6) and gather(b"abc") == [b"abc"] and leads()


def test_shares_are_equal_and_cover_all(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    parts = []
    for rank in range(3):
        monkeypatch.setattr(jax, "process_index", lambda rank=rank: rank)
        parts += share(6)
        assert leads() == (rank == 0)
    assert parts == list(range(6))
    with pytest.raises(ValueError, match="7 rollouts cannot be shared equally by 3 processes"):
        share(7)

"""Rollouts that are kept give the same credit again."""

import dataclasses

import numpy as np
import pytest
from boxes import COMMANDS, task
from fake_world import World

from configs.common import get_config
from trca_jax import credit
from trca_jax.learner.rollouts import judged, recredited, write_rollouts
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.store import read_episodes, read_signals
from trca_jax.rubrics.language import Judge

JUDGE = Judge(World().library)


def config(method, **settings):
    c = get_config()
    c.method, c.env.max_steps = method, 3
    c.credit[method].update(settings)
    return c


def played():
    blank, episodes = np.zeros(0, np.int32), []
    for r, moves in enumerate([("open 2", "open 1"), ("wait", "wait", "open 2"), ("open 2",), ("wait", None)]):
        steps = [Step(blank, blank, blank, None, m, (0, 0), "you see", COMMANDS, f"after {m}") for m in moves]
        steps[-1].reward = float(r in (0, 3))
        episodes.append(Episode(task(f"{r // 2}"), r // 2, "append", "you see", steps, won=r in (0, 3)))
    return episodes


def test_the_method_decides_what_a_context_is():
    by_fields = judged(config("trca"), World(), JUDGE, played())
    by_text = judged(config("gigpo"), World(), JUDGE, played())
    assert by_fields.context[1].tolist() == [0, 0, 0] and by_text.context[1].tolist() == [0, 0, 0]
    similar = judged(config("gigpo", similarity=0.1), World(), JUDGE, played())
    assert by_fields.judgement.shape == (4, 3, 4) and similar.next_context.max() < by_text.next_context.max()


@pytest.mark.parametrize("method", ["trca", "hcapo", "ppo", "prm"])
def test_what_is_kept_gives_the_credit_of_training_again(method, tmp_path):
    c, rng = config(method), np.random.default_rng(0)
    batch = judged(c, World(), JUDGE, played())
    signals = {
        "trca": {},
        "hcapo": {"hindsight_logp": -rng.random((4, 3), np.float32)},
        "ppo": {"token_values": rng.random((4, 3, 2), np.float32), "token_mask": np.ones((4, 3, 2), bool)},
        "prm": {"step_score": np.array([[1, 0, 0], [-1, 0, 1], [np.nan, 0, 0], [0, -1, 0]], np.float32)},
    }[method]
    batch = dataclasses.replace(batch, **signals)
    expected = credit.make(method, **c.credit[method])(batch)
    write_rollouts(tmp_path, 7, played(), batch)
    (path,) = tmp_path.iterdir()
    kept = read_signals(path)
    assert path.name == "rollouts-7.npz" and kept.keys() == signals.keys()
    again = recredited(c, judged(c, World(), JUDGE, read_episodes(path)), kept)
    for name in ("advantage", "episode", "step", "foundational", "returns"):
        np.testing.assert_array_equal(getattr(again, name), getattr(expected, name), err_msg=name)
    assert np.abs(again.advantage).max() > 0.1


def test_without_the_signals_of_its_method_there_is_no_credit():
    c = config("hcapo")
    batch = judged(c, World(), JUDGE, played())
    assert recredited(c, batch, {}) is None
    with pytest.raises(ValueError, match="hindsight_logp has shape"):
        recredited(c, batch, {"hindsight_logp": np.zeros((2, 3), np.float32)})


def test_the_settings_of_the_run_are_used():
    batch = judged(config("trca"), World(), JUDGE, played())
    half = recredited(config("trca", lam=0.5, execution=2.0), batch, {})
    np.testing.assert_array_equal(half.rubric, credit.make("trca", lam=0.5, execution=2.0)(batch).rubric)

"""The warm start: how demonstrations are batched and what is learnt from them."""

import jax
import numpy as np
import pytest
from tiny import TINY, random_params

from trca_jax.learner.update import batch_logp
from trca_jax.learner.warmstart import WarmstartSettings, batches, warm_start
from trca_jax.rollout.episode import Episode, Step


def demonstration(seed, steps=2):
    """Prompts that are noise, answers that always are 7, 8, 3."""
    rng = np.random.default_rng(seed)
    answer = np.array([7, 8, 3], np.int32)
    made = [
        Step(rng.integers(10, 60, 4 + seed % 3), answer, np.zeros(3, np.float32), None, "go", (0, 2), "", ())
        for _ in range(steps)
    ]
    return Episode(None, 0, "append", steps=made)


EPISODES = [demonstration(seed) for seed in range(20)]


def test_an_epoch_holds_every_full_batch_once_and_seeds_repeat_it():
    def rows(seed, n):
        return [
            [tuple(row) for row in batch.tokens]
            for batch, _ in zip(batches(EPISODES, 8, 2, seed), range(n), strict=False)
        ]

    first = [row for batch in rows(0, 2) for row in batch]
    assert len(set(first)) == 16  # 20 episodes give two batches of 8
    assert rows(0, 4) == rows(0, 4) != rows(1, 4)


def test_too_few_demonstrations_are_refused():
    with pytest.raises(ValueError, match="4 demonstrations do not fill a batch of 8"):
        next(batches(EPISODES[:4], 8, 2, 0))


def test_answers_are_learnt_and_observations_only_as_far_as_their_weight_says():
    params, reports = random_params(TINY, scale=0.1), []
    data = batches(EPISODES, 8, 2, 0)
    settings = WarmstartSettings(steps=30, rows=8, lr=1e-2, observation_weight=0.0)
    learnt = warm_start(TINY, params, data, settings, lambda *report: reports.append(report))
    assert [step for step, *_ in reports] == [20, 30]
    assert reports[-1][1] < 0.2 and reports[-1][1] == pytest.approx(reports[-1][2], rel=1e-3)
    batch = next(data)
    logp = np.asarray(jax.jit(lambda p: batch_logp(TINY, p, batch, 1.0)[0])(learnt))
    assert logp[batch.response_mask].mean() > -0.2
    noise = (batch.segment_ids > 0) & ~batch.response_mask & (np.arange(logp.shape[1]) > 0)
    assert logp[noise].mean() < -3

"""The step scores of a process reward model in a run of one or several processes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trca_jax.credit.types import CreditBatch
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.processes import gather, leads
from trca_jax.rollout.score import ScoreError, StepScorer


def scored(
    scorer: StepScorer, episodes: Sequence[Episode], batch: CreditBatch, progress: Callable[[int, int], None]
) -> tuple[CreditBatch, dict[str, Any]]:
    """The batch with its step_score, and for the metrics what that took, as `judge`.

    The first process asks and the others are told, so that the model is paid once and all know the same. Every process
    must call it. Raises, in all of them, the `ScoreError` of the first.
    """
    told = b""
    if leads():
        try:
            scores, took = scorer(episodes, batch.r_env.shape[1], progress)
            told = json.dumps({"scores": scores.tolist(), "took": took}).encode()
        except ScoreError as error:
            told = json.dumps({"error": str(error)}).encode()
    content = json.loads(gather(told)[0])
    if "error" in content:
        raise ScoreError(content["error"])
    return dataclasses.replace(batch, step_score=np.array(content["scores"], np.float32)), {"judge": content["took"]}

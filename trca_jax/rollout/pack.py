"""From episodes to token rows of one static shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flax import struct

from trca_jax.policy.sampler import bucket
from trca_jax.rollout.episode import Episode

ROW_LENGTHS = (128, 256, 320, 384, 448, 512, 640, 768, 1024, 1536, 2048, 2560, 3072, 4096, 4608, 6144, 8192)
_SCORED = (64, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192)


@struct.dataclass
class TokenBatch:
    """B rows of L tokens; everything stands at the token itself (the model predicts token l from the tokens before).

    tokens [B, L] ids. segment_ids [B, L] int8: 1 at the row's tokens, 0 behind its end. behaviour_logp [B, L] float32
    of the sampling distribution. response_mask, action_mask [B, L] booleans: all sampled tokens; those inside the
    action tags (the whole response where it was malformed, or its penalty would reach no token; methods 10.3).
    transition [B, L] int32: the flat index r·T + t of the step whose advantage the token takes. place [B, L] int32: of
    the token in its step's response. allowed: bits [B, L, V/8] of the tokens that could be sampled, or None.
    scored [B, A] int32: the places of the row's response tokens, in order, then L: only there are log-probabilities
    needed (None: everywhere). reference_logp [B, L] float32: under the frozen start policy, or None where nobody asks.
    """

    tokens: np.ndarray
    segment_ids: np.ndarray
    behaviour_logp: np.ndarray
    response_mask: np.ndarray
    action_mask: np.ndarray
    transition: np.ndarray
    place: np.ndarray
    allowed: np.ndarray | None
    scored: np.ndarray | None = None
    reference_logp: np.ndarray | None = None


def pack(episodes: Sequence[Episode], *, max_steps: int, multiple: int = 1, malformed: str = "response") -> TokenBatch:
    """One row an episode (append layout) or a step (stepwise layout); failed episodes give none.

    The row count is rounded up with empty rows to `multiple` times 1, 2, 3, 4, 6, 8, 12, 16, …, and the length to a
    bucket, so few shapes occur.
    malformed: which tokens of an answer without an action count as its action, the whole 'response' or 'none'.
    Raises ValueError for another word there, for a row longer than the largest bucket and for an episode of more than
    max_steps steps.
    """
    if malformed not in ("response", "none"):
        raise ValueError(f"malformed {malformed!r} is unknown, expected 'response' or 'none'")
    rows = []
    for r, episode in enumerate(episodes):
        if episode.failure:
            continue
        if len(episode.steps) > max_steps:
            raise ValueError(f"episode {r} has {len(episode.steps)} steps, max_steps is {max_steps}; raise it")
        steps = [(r * max_steps + t, step) for t, step in enumerate(episode.steps)]
        rows += [steps] if episode.layout == "append" else [[step] for step in steps]
    rows = [row for row in rows if row]
    sizes = [sum(len(s.prompt_ids) + len(s.response_ids) for _, s in row) for row in rows]
    count = multiple * _steps(-(-len(rows) // multiple))
    length = bucket(max(sizes, default=1), ROW_LENGTHS, "tokens of a row")
    shape = (count, length)
    constrained = any(step.allowed is not None for row in rows for _, step in row)
    width = next(step.allowed.shape[1] for row in rows for _, step in row) if constrained else 0
    batch = TokenBatch(
        tokens=np.zeros(shape, np.int32),
        segment_ids=np.zeros(shape, np.int8),
        behaviour_logp=np.zeros(shape, np.float32),
        response_mask=np.zeros(shape, bool),
        action_mask=np.zeros(shape, bool),
        transition=np.zeros(shape, np.int32),
        place=np.zeros(shape, np.int32),
        allowed=np.zeros((*shape, width), np.uint8) if constrained else None,
    )
    for b, row in enumerate(rows):
        at = 0
        for index, step in row:
            start = at + len(step.prompt_ids)
            stop = start + len(step.response_ids)
            batch.tokens[b, at:start] = step.prompt_ids
            batch.tokens[b, start:stop] = step.response_ids
            batch.behaviour_logp[b, start:stop] = step.behaviour_logp
            batch.response_mask[b, start:stop] = True
            whole = (0, stop - start) if malformed == "response" else (0, 0)
            first, last = step.action_span if step.action is not None else whole
            batch.action_mask[b, start + first : start + last] = True
            batch.transition[b, start:stop] = index
            batch.place[b, start:stop] = np.arange(stop - start)
            if constrained:
                batch.allowed[b, start:stop] = step.allowed
            at = stop
        batch.segment_ids[b, :at] = 1
    return batch.replace(scored=_places(batch.response_mask))


def _places(mask: np.ndarray) -> np.ndarray:
    """[B, L] to [B, A]: where each row's mask is set, then L; A is a bucket, at most L."""
    count = mask.sum(axis=1)
    width = min(bucket(max(count, default=1), _SCORED, "sampled tokens of a row"), mask.shape[1])
    order = np.argsort(~mask, axis=1, kind="stable")[:, :width]
    return np.where(np.arange(width) < count[:, None], order, mask.shape[1]).astype(np.int32)


def _steps(count: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most a third is padding, and few different numbers occur."""
    power = 1 << max(count - 1, 0).bit_length()
    return 3 * power // 4 if power >= 4 and count <= 3 * power // 4 else power

"""Batches for the credit tests: filled-in defaults, batches from flat rows, drawn batches."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trca_jax.credit import CreditBatch


def dense(*columns):
    """One integer id per distinct tuple of the columns, in the shape of the first."""
    flat = np.stack([np.unique(np.ravel(c), return_inverse=True)[1] for c in np.broadcast_arrays(*columns)], axis=-1)
    return np.unique(flat, axis=0, return_inverse=True)[1].reshape(np.shape(columns[0]))


def batch_of(*, r_env, length, group, **given):
    """A CreditBatch whose fields that do not matter for the test are filled in (no items, one context a task)."""
    r_env, length, group = np.asarray(r_env, float), np.asarray(length), np.asarray(group)
    rollouts, steps = r_env.shape
    judgement = np.asarray(given.pop("judgement", np.zeros((rollouts, steps, 0), np.int8)))
    context = np.asarray(given.pop("context", np.broadcast_to(group[:, None], (rollouts, steps))))
    fields = {
        "judgement": judgement,
        "item_category": np.zeros((rollouts, judgement.shape[2]), int),
        "item_mask": np.ones((rollouts, judgement.shape[2]), int),
        "r_env": r_env,
        "outcome": r_env.sum(axis=1),
        "length": length,
        "group": group,
        "context": context,
        "next_context": context,
        "valid": np.ones((rollouts, steps), int),
    }
    return CreditBatch(**(fields | {name: np.asarray(value) for name, value in given.items()}))


def batch_of_rows(*, uid, rollout, reward, valid, t=None, anchor=None):
    """A CreditBatch from flat rows (one row a step), and for each row its place (r, t) in the batch.

    t: step of the row; if None, rows of a rollout follow each other in the order given.
    """
    rollout = dense(rollout)
    if t is None:
        t = np.array([(rollout[:i] == r).sum() for i, r in enumerate(rollout)])
    shape = (rollout.max() + 1, max(t) + 1)
    r_env, parsed, context = np.zeros(shape), np.ones(shape, int), np.zeros(shape, int)
    place = (rollout, np.asarray(t))
    r_env[place], parsed[place] = reward, valid
    if anchor is not None:
        context[place] = dense(uid, anchor)
    group = np.zeros(shape[0], int)
    group[rollout] = dense(uid)
    length = np.bincount(rollout, minlength=shape[0])
    return batch_of(r_env=r_env, length=length, group=group, valid=parsed, context=context), place


def pad(batch, rollouts, steps):
    """The same batch in a larger array; what fills it up must not matter, so it is rubbish."""
    wide = {}
    for name in ("judgement", "item_category", "item_mask", "r_env", "outcome", "group", "context", "valid"):
        array = getattr(batch, name)
        shape = (rollouts,) + ((steps,) if array.ndim > 1 and not name.startswith("item") else ()) + array.shape[2:]
        if name.startswith("item"):
            shape = (rollouts, array.shape[1])
        rubbish = np.full(shape, np.nan if array.dtype.kind == "f" else 1, array.dtype)
        rubbish[tuple(slice(n) for n in array.shape)] = array
        wide[name] = rubbish
    return batch_of(**wide, length=np.pad(batch.length, (0, rollouts - len(batch.length))))


ROLLOUTS, STEPS, ITEMS, GROUP = 8, 5, 6, 4


@st.composite
def batches(draw, success=True):
    """Small judged batches of one shape: two tasks of four rollouts, lengths 0..5, rubbish behind the ends.

    success: False makes every outcome 0.
    """

    def numbers(low, high, *shape):
        return draw(hnp.arrays(np.int64, shape, elements=st.integers(low, high)))

    length = numbers(0, STEPS, ROLLOUTS)
    group = np.arange(ROLLOUTS) // GROUP
    live = np.arange(STEPS) < length[:, None]
    outcome = numbers(0, int(success), ROLLOUTS) * (length > 0)
    r_env = np.where(np.arange(STEPS) == length[:, None] - 1, outcome[:, None], 0.0)
    context = group[:, None] * 3 + numbers(0, 2, ROLLOUTS, STEPS)
    return batch_of(
        r_env=np.where(live, r_env, np.nan),
        outcome=np.where(length > 0, outcome, np.nan),
        length=length,
        group=group,
        judgement=numbers(0, 1, ROLLOUTS, STEPS, ITEMS),
        item_category=np.repeat(numbers(0, 2, ROLLOUTS // GROUP, ITEMS), GROUP, axis=0),
        item_mask=np.repeat(numbers(0, 1, ROLLOUTS // GROUP, ITEMS), GROUP, axis=0),
        context=np.where(live, context, -7),
        valid=numbers(0, 1, ROLLOUTS, STEPS),
    )


def at_live_steps(batch, array):
    """The values of an (R, T) array at the real steps, by (r, t); asserts that it is exactly 0 elsewhere."""
    array = np.asarray(array)
    live = np.arange(array.shape[1]) < np.asarray(batch.length)[:, None]
    assert (array[~live] == 0).all()
    return {(r, t): array[r, t] for r, t in zip(*np.nonzero(live), strict=True)}

"""Batches for the credit tests: filled-in defaults, batches from flat rows, drawn batches."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trca_jax.credit import CreditBatch
from trca_jax.credit.types import AXES


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


def batch_of_rows(*, uid, rollout, reward, valid, t=None, anchor=None, following=None, **signals):
    """A CreditBatch from flat rows (one row a step), and for each row its place (r, t) in the batch.

    t: step of the row; if None, rows of a rollout follow each other in the order given. anchor, following: names of the
    states before and after it. signals: (R, T) arrays by name, a value a row.
    """
    rollout = dense(rollout)
    if t is None:
        t = np.array([(rollout[:i] == r).sum() for i, r in enumerate(rollout)])
    shape = (rollout.max() + 1, max(t) + 1)
    r_env, parsed, context = np.zeros(shape), np.ones(shape, int), np.zeros(shape, int)
    place = (rollout, np.asarray(t))
    r_env[place], parsed[place] = reward, valid
    after = context.copy()
    if anchor is not None:
        ids = dense(np.concatenate([uid, uid]), np.concatenate([anchor, anchor if following is None else following]))
        order = {name: i for i, name in enumerate(dict.fromkeys(ids))}  # states that were acted in come first
        context[place], after[place] = np.split(np.array([order[name] for name in ids]), 2)
    group = np.zeros(shape[0], int)
    group[rollout] = dense(uid)
    length = np.bincount(rollout, minlength=shape[0])
    for name, values in signals.items():
        signals[name] = np.zeros(shape)
        signals[name][place] = values
    given = {"valid": parsed, "context": context, "next_context": after}
    return batch_of(r_env=r_env, length=length, group=group, **given, **signals), place


def pad(batch, rollouts, steps):
    """The same batch in a larger array; what fills it up must not matter, so it is rubbish."""
    wide = {}
    for name, axes in AXES.items():
        array = getattr(batch, name)
        if array is None or name == "length":
            continue
        sizes = {"R": rollouts, "T": steps, "T+1": steps + 1}
        shape = tuple(sizes.get(axis, n) for axis, n in zip(axes.split(), array.shape, strict=True))
        rubbish = np.full(shape, np.nan if array.dtype.kind == "f" else 1, array.dtype)
        rubbish[tuple(slice(n) for n in array.shape)] = array
        wide[name] = rubbish
    return batch_of(**wide, length=np.pad(batch.length, (0, rollouts - len(batch.length))))


ROLLOUTS, STEPS, ITEMS, GROUP, TOKENS, DOCUMENTS = 8, 5, 6, 4, 4, 2


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
    states = group[:, None] * 3 + numbers(0, 2, ROLLOUTS, STEPS + 1)
    context, following = states[:, :-1], states[:, 1:]
    answered = numbers(0, 1, ROLLOUTS)

    def real(scale, *shape):
        return numbers(-20, 0, ROLLOUTS, *shape) / scale

    return batch_of(
        r_env=np.where(live, r_env, np.nan),
        outcome=np.where(length > 0, outcome, np.nan),
        length=length,
        group=group,
        judgement=numbers(0, 1, ROLLOUTS, STEPS, ITEMS),
        item_category=np.repeat(numbers(0, 2, ROLLOUTS // GROUP, ITEMS), GROUP, axis=0),
        item_mask=np.repeat(numbers(0, 1, ROLLOUTS // GROUP, ITEMS), GROUP, axis=0),
        context=np.where(live, context, -7),
        next_context=np.where(live, following, -7),
        valid=numbers(0, 1, ROLLOUTS, STEPS),
        gold_logp=real(5, STEPS + 1),
        tool=np.arange(STEPS) < (length - answered)[:, None],
        hindsight_logp=np.where(live, real(5, STEPS), np.nan),
        token_values=np.where(live[:, :, None], real(10, STEPS, TOKENS), np.nan),
        token_mask=np.arange(TOKENS) < numbers(1, TOKENS, ROLLOUTS, STEPS)[:, :, None],
        golden_similarity=np.where(live[:, :, None], np.maximum(-real(20, STEPS, DOCUMENTS), 0), np.nan),
        redundancy=np.where(live, -real(20, STEPS), np.nan),
        step_score=np.where(live, np.array([-1, 0, 1, 1, np.nan])[numbers(0, 4, ROLLOUTS, STEPS)], 7.0),
    )


def at_live_steps(batch, array):
    """The values of an (R, T) array at the real steps, by (r, t); asserts that it is exactly 0 elsewhere."""
    array = np.asarray(array)
    live = np.arange(array.shape[1]) < np.asarray(batch.length)[:, None]
    assert (array[~live] == 0).all()
    return {(r, t): array[r, t] for r, t in zip(*np.nonzero(live), strict=True)}

"""Packing against a loop over tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.pack import pack

MAX_STEPS, BYTES = 5, 3


@st.composite
def batches(draw):
    layout = draw(st.sampled_from(["append", "stepwise"]))
    constrained = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    out = []
    for r in range(draw(st.integers(1, 5))):
        steps = []
        for _ in range(draw(st.integers(0, MAX_STEPS))):
            n, p = rng.integers(1, 7), rng.integers(0, 6)
            span = tuple(sorted(rng.choice(n + 1, 2, replace=False)))
            action = draw(st.sampled_from(["go", None]))
            allowed = rng.integers(0, 256, (n, BYTES), np.uint8) if constrained else None
            ids, logp = rng.integers(1, 99, p + n), -rng.random(n).astype(np.float32)
            steps.append(Step(ids[:p], ids[p:], logp, allowed, action, span if action else (0, 0), "", ()))
        out.append(Episode(None, 0, layout, steps=steps, failure=draw(st.sampled_from([None, None, f"lost {r}"]))))
    return out


def loop(episodes):
    """Rows of tokens, each a tuple (id, sampled, in the action, log-probability, transition, bits)."""
    rows = []
    for r, episode in enumerate(episodes):
        row = []
        for t, step in enumerate(episode.steps if not episode.failure else []):
            row += [(i, False, False, 0.0, 0, None) for i in step.prompt_ids]
            for k, i in enumerate(step.response_ids):
                inside = step.action is None or step.action_span[0] <= k < step.action_span[1]
                bits = None if step.allowed is None else tuple(step.allowed[k])
                row.append((i, True, inside, step.behaviour_logp[k], r * MAX_STEPS + t, bits))
            if episode.layout == "stepwise":
                rows.append(row)
                row = []
        if row:
            rows.append(row)
    return rows


@settings(deadline=None, max_examples=60)
@given(batches(), st.sampled_from([1, 4]))
def test_every_token_equals_the_loop(episodes, multiple):
    expected = loop(episodes)
    batch = pack(episodes, max_steps=MAX_STEPS, multiple=multiple)
    B, L = batch.tokens.shape
    assert (
        B % multiple == 0 and len(expected) <= B <= multiple * max(1, 1.5 * len(expected) / multiple + 1) and L == 128
    )
    assert (batch.allowed is None) == all(token[5] is None for row in expected for token in row)
    for b in range(B):
        row = expected[b] if b < len(expected) else []
        places = [at for at, token in enumerate(row) if token[1]]
        assert batch.scored[b].tolist() == places + [L] * (batch.scored.shape[1] - len(places))
        for at in range(L):
            token = row[at] if at < len(row) else (0, False, False, 0.0, 0, None)
            found = (
                batch.tokens[b, at], batch.response_mask[b, at], batch.action_mask[b, at], batch.behaviour_logp[b, at],
                batch.transition[b, at],
            )  # fmt: skip
            assert found == token[:5]
            assert batch.segment_ids[b, at] == (at < len(row))
            if batch.allowed is not None:
                assert tuple(batch.allowed[b, at]) == (token[5] or (0,) * BYTES)


def one(prompt, response, **more):
    ids = np.arange(1, prompt + response + 1)
    step = Step(ids[:prompt], ids[prompt:], np.zeros(response, np.float32), None, None, (0, 0), "", ())
    return Episode(None, 0, "append", steps=[step], **more)


def test_a_malformed_answer_carries_its_credit_on_all_its_tokens():
    batch = pack([one(3, 4)], max_steps=1)
    assert np.flatnonzero(batch.action_mask[0]).tolist() == [3, 4, 5, 6]
    assert batch.place[0, 3:7].tolist() == [0, 1, 2, 3]
    assert not pack([one(3, 4)], max_steps=1, malformed="none").action_mask.any()
    with pytest.raises(ValueError, match="malformed 'all' is unknown"):
        pack([one(3, 4)], max_steps=1, malformed="all")


def test_row_counts_come_from_few_sizes():
    """So a layout of one row a step does not compile anew each time an episode is a step longer."""
    counts = {len(pack([one(1, 1)] * n, max_steps=1, multiple=2).tokens) for n in range(1, 65)}
    assert counts == {2, 4, 6, 8, 12, 16, 24, 32, 48, 64}


@pytest.mark.parametrize(("tokens", "length"), [(128, 128), (129, 256), (300, 320)])
def test_lengths_come_from_few_buckets(tokens, length):
    assert pack([one(tokens - 5, 5), one(3, 2)], max_steps=1).tokens.shape == (2, length)


def test_types_do_not_depend_on_the_episodes():
    """Other types would compile anew."""
    batch = pack([one(3, 4)], max_steps=1)
    assert {name: array.dtype.name for name, array in vars(batch).items() if array is not None} == {
        "tokens": "int32", "segment_ids": "int8", "behaviour_logp": "float32", "response_mask": "bool",
        "action_mask": "bool", "transition": "int32", "place": "int32", "scored": "int32",
    }  # fmt: skip


def test_a_batch_of_failures_is_empty_rows():
    batch = pack([one(3, 4, failure="lost")], max_steps=1, multiple=8)
    assert batch.tokens.shape == (8, 128) and not batch.segment_ids.any() and not batch.response_mask.any()


def test_a_row_beyond_the_largest_bucket_is_refused():
    with pytest.raises(ValueError, match="tokens of a row: 8193 exceeds the largest bucket 8192"):
        pack([one(8096, 97)], max_steps=1)


def test_an_episode_beyond_max_steps_is_refused():
    """Its transitions would be those of the next episode."""
    long = one(3, 4)
    long.steps *= 2
    with pytest.raises(ValueError, match="episode 1 has 2 steps, max_steps is 1"):
        pack([one(3, 4), long], max_steps=1)

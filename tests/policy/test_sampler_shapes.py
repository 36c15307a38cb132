"""The sampler's batch and cache: rows that pause, end or do not fit, and how few shapes there are."""

import jax.numpy as jnp
import numpy as np
import pytest
from sampling import COMMANDS, STOP, STOPS, make, row_keys, sample, stopping

from trca_jax.policy import sampler as sampler_module
from trca_jax.policy.sampler import Buckets, bucket


@pytest.fixture(scope="module")
def params(params):
    return stopping(params)


def test_a_shape_is_compiled_once_for_each_pair_of_buckets(params):
    """Twelve turns of all kinds of lengths: chunks of 8, rows of 16 and 32."""
    sampler = make(2, max_new=2, buckets=Buckets(chunk=(8,), slots=(16, 32)))
    before = sampler_module._turn._cache_size()
    for added in ([1, 4], [3, 3], [5, 2], [2, 7]):
        sampler.reset()
        texts = [[5] * n for n in added]
        for turn in range(3):
            out = sample(sampler, params, texts, row_keys(turn, 2))
            more = ([*ids[:n], *[6] * (turn + 5)] for ids, n in zip(out.ids, out.count, strict=True))
            texts = [text + new for text, new in zip(texts, more, strict=True)]
    assert sampler_module._turn._cache_size() - before == 2


def played_alone(params, row, new, fresh_keys):
    """One row's answers when nobody pauses or ends: (ids, logp) turn by turn."""
    sampler, text, out = make(4), [], []
    for turn, ids in enumerate(new):
        text = text + ids
        got = sample(sampler, params, [text if r == row else [] for r in range(4)], fresh_keys(turn))
        n = got.count[row]
        text, out = text + got.ids[row, :n].tolist(), [*out, (got.ids[row, :n], got.logp[row, :n])]
    return out


def test_rows_may_pause_and_end_and_the_cache_shrinks_with_the_batch(params):
    """Row 2 pauses in turn 1 and 2 and its cache waits for it: read again, its text would not fit the chunk of 8."""
    sampler = make(4, buckets=Buckets(chunk=(8,), slots=(64,), commands=(4,), batch=(1, 2, 4)))
    new = [[[5 + r, 6, 7 + t] for t in range(5)] for r in range(4)]
    plays = [(0, 1, 2, 3), (0, 1, 3), (0, 3), (2, 3), (2,)]  # the rows of each turn
    paused = [(), (2,), (2,), (), ()]
    texts, turns, batches = [[] for _ in range(4)], [0] * 4, []
    expected = [played_alone(params, r, new[r], lambda turn: row_keys(turn, 4)) for r in range(4)]
    for playing, waiting in zip(plays, paused, strict=True):
        rows = [None] * 4
        for r in waiting:
            rows[r] = []
        for r in playing:
            texts[r] = texts[r] + new[r][turns[r]]
            rows[r] = texts[r]
        keys = jnp.stack([row_keys(turns[r], 4)[r] for r in range(4)])
        out = sample(sampler, params, rows, keys)
        batches.append(sampler._cache.k.shape[1])
        for r in range(4):
            n = out.count[r]
            assert (n > 0) == (r in playing)
            if n:
                ids, logp = expected[r][turns[r]]
                np.testing.assert_array_equal(out.ids[r, :n], ids)
                np.testing.assert_allclose(out.logp[r, :n], logp, atol=1e-5)
                texts[r], turns[r] = texts[r] + ids.tolist(), turns[r] + 1
    assert batches == [4, 4, 4, 2, 1]
    with pytest.raises(ValueError, match=r"rows \[3\] have ended; reset\(\) first"):
        sample(sampler, params, [None, None, None, texts[3] + [5]], keys)
    sampler.reset()
    sample(sampler, params, [[5]] * 4, keys)
    assert sampler._cache.k.shape[1] == 4


def test_batches_are_compiled_once_for_each_size(params):
    """Rows end in two different orders, and at once; 6 rows in batches of 6, 3 and 2."""
    sampler = make(6, max_new=2, buckets=Buckets(chunk=(8,), slots=(32,), batch=(1, 2, 3)))
    before = sampler_module._turn._cache_size()
    for order in ([(0, 1, 2, 3, 4, 5), (0, 2, 4), (4,)], [(1, 2, 3, 5), (1, 2, 3), (2, 3)], [(0, 1, 2, 3, 4), (3,)]):
        sampler.reset()
        texts = [[5]] * 6
        for playing in order:
            out = sample(sampler, params, [texts[r] if r in playing else None for r in range(6)], row_keys(0, 6))
            texts = [t + out.ids[r, : out.count[r]].tolist() + [6] for r, t in enumerate(texts)]
    assert sampler_module._turn._cache_size() - before == 3


def test_fits_says_what_start_turn_accepts(params):
    """The answer's last token is not cached: it comes with the next chunk."""
    sampler = make()
    assert sampler.fits(0, 16) and not sampler.fits(0, 17)
    assert sampler.fits(10, 15) and not sampler.fits(10, 16)
    assert sampler.fits(49, 10) and not sampler.fits(50, 10)
    row = [5] * 16
    out = sample(sampler, params, [row, [], []], row_keys(0, 3))
    row = row + list(out.ids[0, : out.count[0]]) + [6] * 15
    sample(sampler, params, [row, [], []], row_keys(1, 3))


def test_rows_that_do_not_fit_are_refused(params):
    sampler, idle = make(), [[], []]
    with pytest.raises(ValueError, match="tokens appended in one turn: 17 exceeds the largest bucket 16"):
        sampler.start_turn(params, [[5] * 17, *idle], row_keys(0, 3))
    wide = make(buckets=Buckets(chunk=(64,), slots=(64,)))
    with pytest.raises(ValueError, match="tokens of a row and its answer: 65 exceeds the largest bucket 64"):
        wide.start_turn(params, [[5] * 60, *idle], row_keys(0, 3))
    with pytest.raises(ValueError, match="commands offered: 5 exceeds the largest bucket 4"):
        sampler.start_turn(params, [[5], *idle], row_keys(0, 3), [[*COMMANDS, (9, STOP)], [], []])
    sample(sampler, params, [[5, 6, 7], *idle], row_keys(0, 3))
    with pytest.raises(ValueError, match=r"row 0 has 2 tokens, \d are cached; append to it, or reset\(\) first"):
        sampler.start_turn(params, [[5, 6], *idle], row_keys(1, 3))


def test_stops_of_another_vocabulary_are_refused():
    with pytest.raises(ValueError, match="stops are for 59 ids, expected the model's 60"):
        make(stops=STOPS[:, 1:])


@pytest.mark.parametrize("sizes", [(), (64, 32), (32, 32), (0, 32)])
def test_buckets_must_ascend(sizes):
    with pytest.raises(ValueError, match=r"buckets\.slots = .*expected ascending positive sizes"):
        Buckets(slots=sizes)


def test_the_whole_batch_is_a_bucket():
    with pytest.raises(ValueError, match=r"buckets\.batch = \(2, 4\): expected 1, the whole batch, as the first"):
        Buckets(batch=(2, 4))


def test_bucket_takes_the_smallest_that_holds():
    assert [bucket(n, (4, 8), "x") for n in (0, 1, 4, 5, 8)] == [4, 4, 4, 8, 8]
    with pytest.raises(ValueError, match="x: 9 exceeds the largest bucket 8; enlarge the buckets"):
        bucket(9, (4, 8), "x")

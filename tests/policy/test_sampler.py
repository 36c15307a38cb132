"""The sampler: its log-probabilities are the trainer's, its rows are independent, its shapes few."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from tiny import TINY

from trca_jax.learner.update import batch_logp
from trca_jax.policy import sampler as sampler_module
from trca_jax.policy.decoding import Decoding, distribution
from trca_jax.policy.head import log_softmax, logits
from trca_jax.policy.qwen2 import Qwen2, output_embedding
from trca_jax.policy.sampler import Buckets, Sampler, bucket
from trca_jax.policy.tokens import stop_table
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.pack import pack

STOP, NEW, T = 3, 5, 0.8
STOPS = stop_table([], [], [STOP], TINY.vocab_size)
DRAWN = Decoding(T)
BUCKETS = Buckets(chunk=(8, 16), slots=(16, 32, 64), commands=(4,))
# Shared beginnings, different lengths, one that is nothing but the stop token, one that fills all NEW tokens.
COMMANDS = [(10, 11, STOP), (10, 11, 12, 13, STOP), (20, STOP), (STOP,)]


@pytest.fixture(scope="module")
def params(params):
    """The shared model, but the stop token is likely in some places, so that answers differ in length."""
    return params | {"embedding": params["embedding"].at[STOP].multiply(3)}


def make(rows=3, **changes):
    """A sampler whose answers end with STOP alone."""
    return Sampler(TINY, rows, **{"max_new": NEW, "stops": STOPS, "buckets": BUCKETS} | changes)


def sample(sampler, params, rows, keys, commands=None, decoding=DRAWN):
    return sampler.finish_turn(sampler.start_turn(params, rows, keys, commands, decoding))


def row_keys(turn, rows, seed=0):
    return jax.vmap(lambda r: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), r), turn))(np.arange(rows))


def prompts(turn, rows):
    """Ragged new tokens; row 1 pauses from turn 2 on."""
    rng = np.random.default_rng(100 + turn)
    return [[] if r == 1 and turn >= 2 else list(rng.integers(4, 60, 2 + (3 * r + turn) % 5)) for r in range(rows)]


def play(params, sampler, turns, rows=3, commands=None, fresh=False):
    """Appends prompts and answers turn by turn; returns the steps by (row, turn). fresh: rows begin anew each turn."""
    steps, texts = {}, [[] for _ in range(rows)]
    for turn in range(turns):
        new = prompts(turn, rows)
        texts = [(text if not fresh else []) + ids if ids else [] for text, ids in zip(texts, new, strict=True)]
        if fresh:
            sampler.reset()
        offered = None if commands is None else [commands[turn % 2 :] if ids else [] for ids in new]
        out = sample(sampler, params, texts, row_keys(turn, rows), offered)
        for r, ids in enumerate(new):
            n = out.count[r]
            assert (n == 0) == (not ids)
            if ids:
                bits = None if out.allowed is None else out.allowed[r, :n]
                answer = out.ids[r, :n]
                steps[r, turn] = Step(
                    np.array(texts[r] if fresh else ids), answer, out.logp[r, :n], bits, "a", (0, n), "", ()
                )
                texts[r] = texts[r] + list(answer)
    return steps


def episodes(steps, rows, layout="append"):
    turns = max(t for _, t in steps) + 1
    return [Episode(None, r, layout, steps=[steps[r, t] for t in range(turns) if (r, t) in steps]) for r in range(rows)]


@pytest.fixture(scope="module")
def trainer_logp(params):
    run = jax.jit(lambda batch: batch_logp(TINY, params, batch, T)[0])
    return lambda batch: np.asarray(run(batch))


@pytest.mark.parametrize("commands", [None, COMMANDS], ids=["free", "commands"])
def test_the_trainer_finds_the_log_probabilities_of_the_sampler(params, trainer_logp, commands):
    """Four turns of ragged rows, one of them idle at the end, while the cache grows from 16 to 64 slots."""
    steps = play(params, make(), 4, commands=commands)
    assert len({s.response_ids.size for s in steps.values()}) > 2
    batch = pack(episodes(steps, 3), max_steps=4)
    mask = batch.response_mask
    assert mask.sum() == sum(len(s.response_ids) for s in steps.values())
    found = trainer_logp(batch)
    np.testing.assert_allclose(found[mask], batch.behaviour_logp[mask], atol=1e-4)
    if commands is None:
        assert batch.behaviour_logp[mask].max() < -0.01
    else:
        # Without the mask of what could be sampled the trainer's values are others.
        assert np.abs(trainer_logp(batch.replace(allowed=None))[mask] - batch.behaviour_logp[mask]).max() > 0.5
        assert (batch.behaviour_logp[mask] == 0).any()  # where one token was left


def test_constrained_answers_are_always_one_of_the_commands(params):
    seen = set()
    sampler = make()
    for turn in range(40):
        sampler.reset()
        offered = [COMMANDS[r:] for r in range(3)]
        out = sample(sampler, params, [[5, turn + 7]] * 3, row_keys(turn, 3), offered)
        answers = [tuple(ids[:n]) for ids, n in zip(out.ids.tolist(), out.count, strict=True)]
        assert all(answer in choices for answer, choices in zip(answers, offered, strict=True))
        for r, n in enumerate(out.count):
            assert not out.allowed[r, n:].any() and not out.ids[r, n:].any() and not out.logp[r, n:].any()
        seen |= set(answers)
    assert seen == set(COMMANDS)


def test_a_row_without_commands_may_sample_anything(params):
    rows = [[5, 6]] * 3
    free = make()
    expected = sample(free, params, rows, row_keys(0, 3))
    mixed = make()
    out = sample(mixed, params, rows, row_keys(0, 3), [[], COMMANDS, []])
    assert tuple(out.ids[1, : out.count[1]]) in COMMANDS
    for r in (0, 2):
        np.testing.assert_array_equal(out.ids[r], expected.ids[r])
        np.testing.assert_allclose(out.logp[r], expected.logp[r], atol=1e-5)
        assert not out.allowed[r].any()


def test_a_sample_depends_on_its_own_row_and_key_alone(params):
    together = play(params, make(), 4)
    others_idle, alone = make(), {}
    text = []
    for turn in range(4):
        text = text + prompts(turn, 3)[2]
        out = sample(others_idle, params, [[], [], text], row_keys(turn, 3))
        alone[turn] = out
        text = text + list(out.ids[2, : out.count[2]])
    for turn, out in alone.items():
        np.testing.assert_array_equal(out.ids[2, : out.count[2]], together[2, turn].response_ids)
        np.testing.assert_allclose(out.logp[2, : out.count[2]], together[2, turn].behaviour_logp, atol=1e-5)
    # Equal texts with other keys differ.
    one = make()
    out = sample(one, params, [[9, 9]] * 3, row_keys(0, 3))
    assert len({tuple(ids) for ids in out.ids.tolist()}) == 3


def test_fresh_rows_give_what_growing_rows_give(params):
    """The cache kept between turns against the whole row computed again after a reset."""
    growing = play(params, make(), 3)
    again = make(buckets=Buckets(chunk=(32,), slots=(64,), commands=(4,)))
    for turn in range(3):
        texts = [[], [], []]
        for r in range(3):
            if (r, turn) in growing:
                for t in range(turn):
                    texts[r] += [*growing[r, t].prompt_ids, *growing[r, t].response_ids]
                texts[r] += list(growing[r, turn].prompt_ids)
        again.reset()
        out = sample(again, params, texts, row_keys(turn, 3))
        for r in range(3):
            if (r, turn) in growing:
                np.testing.assert_array_equal(out.ids[r, : out.count[r]], growing[r, turn].response_ids)
                np.testing.assert_allclose(out.logp[r, : out.count[r]], growing[r, turn].behaviour_logp, atol=1e-5)


def test_a_stepwise_batch_is_scored_as_it_was_sampled(params, trainer_logp):
    steps = play(params, make(), 3, fresh=True)
    batch = pack(episodes(steps, 3, "stepwise"), max_steps=3)
    assert batch.tokens.shape[0] == len(steps)
    mask = batch.response_mask
    np.testing.assert_allclose(trainer_logp(batch)[mask], batch.behaviour_logp[mask], atol=1e-4)


def test_first_tokens_follow_the_tempered_distribution(params):
    """Chi-square of 4,096 draws from one prompt."""
    rows, sampler = 512, make(512, max_new=1)
    prompt = [17, 41, 8]
    counts = np.zeros(TINY.vocab_size)
    for turn in range(8):
        sampler.reset()
        out = sample(sampler, params, [prompt] * rows, row_keys(turn, rows, seed=1))
        counts += np.bincount(out.ids[:, 0], minlength=TINY.vocab_size)
    hidden = Qwen2(TINY).apply({"params": params}, np.array([prompt]), np.arange(3)[None])[0][0, -1]
    p = np.exp(np.asarray(log_softmax(logits(hidden, output_embedding(TINY, params)), T), np.float64))
    rare = p * counts.sum() < 8
    seen = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(p[~rare], p[rare].sum())
    assert len(seen) > 10
    test = scipy.stats.chisquare(seen, expected / expected.sum() * counts.sum())
    assert test.pvalue > 1e-3
    # The test would notice a temperature of 1.
    warm = np.exp(np.asarray(log_softmax(logits(hidden, output_embedding(TINY, params)), 1.0), np.float64))
    wrong = np.append(warm[~rare], warm[rare].sum())
    assert scipy.stats.chisquare(seen, wrong / wrong.sum() * counts.sum()).pvalue < 1e-6


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


def test_an_answer_ends_with_a_string_however_its_tokens_cut_it(params):
    """'</' and 'a>' end an answer together only; '</a>!' alone, with a letter behind the tag."""
    pieces = [b"x"] * TINY.vocab_size
    pieces[10], pieces[11], pieces[12] = b"</", b"a>", b"</a>!"
    scaled = params["embedding"].at[jnp.array([STOP, 12])].set(params["embedding"][jnp.array([5, 6])])
    likely = params | {"embedding": scaled.at[jnp.array([10, 11])].multiply(4)}
    sampler = make(128, max_new=8, stops=stop_table(pieces, ["</a>"], [], TINY.vocab_size))
    out = sample(sampler, likely, [[7, 8]] * 128, row_keys(0, 128))
    by_pair = by_one = 0
    for ids, n in zip(out.ids.tolist(), out.count, strict=True):
        text = [b"".join(pieces[i] for i in ids[:k]) for k in range(9)]
        assert n == next((k for k in range(9) if b"</a>" in text[k]), 8)
        by_pair += n < 8 and ids[n - 2 : n] == [10, 11]
        by_one += n < 8 and ids[n - 1] == 12
        assert not any(ids[n:])
    assert by_pair > 3 and by_one > 3


def test_a_greedy_answer_is_the_likeliest_and_its_log_probabilities_are_those_of_temperature_one(params):
    row = [9, 8, 7]
    one = sample(make(), params, [row] * 3, row_keys(0, 3), decoding=Decoding(0.0))
    assert (one.ids == one.ids[0]).all()
    n = one.count[0]
    tokens = jnp.array([row + one.ids[0, :n].tolist()])
    hidden = Qwen2(TINY).apply({"params": params}, tokens, jnp.arange(len(tokens[0]))[None])[0][0, 2:-1]
    logp = np.asarray(log_softmax(logits(hidden, output_embedding(TINY, params)), 1.0))
    np.testing.assert_array_equal(one.ids[0, :n], logp.argmax(axis=-1))
    np.testing.assert_allclose(one.logp[0, :n], logp.max(axis=-1), atol=1e-5)


def test_log_probabilities_are_those_of_what_was_sampled_from(params):
    decoding = Decoding(T, top_p=0.6, top_k=9)
    out = sample(make(128, max_new=1), params, [[17, 41, 8]] * 128, row_keys(0, 128), decoding=decoding)
    hidden = Qwen2(TINY).apply({"params": params}, jnp.array([[17, 41, 8]]), jnp.arange(3)[None])[0][0, -1]
    logp = np.asarray(distribution(logits(hidden, output_embedding(TINY, params)), decoding, None))
    kept = np.flatnonzero(np.isfinite(logp))
    assert 1 < len(kept) <= 9
    assert set(out.ids[:, 0]) == set(kept.tolist())
    np.testing.assert_allclose(out.logp[:, 0], logp[out.ids[:, 0]], atol=1e-5)


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

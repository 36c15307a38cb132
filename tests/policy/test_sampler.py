"""The sampler: its log-probabilities are the trainer's, its rows are independent, its answers end where they should."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from sampling import COMMANDS, STOP, T, make, row_keys, sample, stopping
from tiny import TINY

from trca_jax.learner.update import batch_logp
from trca_jax.policy.decoding import Decoding, distribution
from trca_jax.policy.head import log_softmax, logits
from trca_jax.policy.qwen2 import Qwen2, output_embedding
from trca_jax.policy.sampler import Buckets
from trca_jax.policy.tokens import stop_table
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.pack import pack


@pytest.fixture(scope="module")
def params(params):
    return stopping(params)


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

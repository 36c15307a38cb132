"""Signals of a model: along branches as from scratch, in the right places, and only for who needs them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boxes import task
from fake_world import CONFIG, TOKENIZER, ShortPrompt, World, policy

from trca_jax.agents.prompts import WordPrompt
from trca_jax.credit import METHODS
from trca_jax.envs.alfworld.brief import brief
from trca_jax.envs.pool import EnvPool
from trca_jax.learner.critic import critic_params, make_critic_update, token_values
from trca_jax.learner.signals import Branch, Signals, branch_logp, gold_branches, hindsight_branches
from trca_jax.learner.state import new_state, optimizer
from trca_jax.learner.update import token_advantages
from trca_jax.policy.head import token_logp
from trca_jax.policy.qwen2 import Qwen2, output_embedding
from trca_jax.policy.sampler import Buckets
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.pack import pack
from trca_jax.rubrics.language import Judge

STEPS, NEW = 4, 4
HINT, LEAD = "it is {final} time {now}", "the box is"
PROMPTS = {"append": WordPrompt(brief), "stepwise": ShortPrompt()}
every_layout = pytest.mark.parametrize("layout", PROMPTS)


@pytest.fixture(scope="module")
def params():
    return policy()


@pytest.fixture(scope="module")
def played(params):
    """By layout: the codec, and episodes of unequal length of which one failed; admissible decoding."""
    found = {}
    for layout, prompt in PROMPTS.items():
        codec = Codec(TOKENIZER, prompt, NEW)
        with EnvPool(World().make_env, slots=4, workers=0) as pool:
            collector = Collector(
                CONFIG, codec, pool, max_steps=STEPS, max_new=NEW, decode="admissible", halves=1,
                buckets=Buckets(chunk=(32,), slots=(96,), commands=(4,)),
            )  # fmt: skip
            tasks = [task("a"), task("a"), task("b", breaks=1), task("b", goal="green")]
            found[layout] = codec, collector(params, tasks, [0, 0, 1, 1], jax.random.key(1))
    assert len({len(e.steps) for e in found["append"][1]}) > 1
    return found


@pytest.fixture(scope="module")
def from_scratch(params):
    """Mean log-probability of the tokens from `first` on, of a row of its own without a cache."""

    @jax.jit
    def logp(tokens, bits):
        hidden, _ = Qwen2(CONFIG).apply({"params": params}, tokens, jnp.arange(tokens.shape[1])[None])
        table = output_embedding(CONFIG, params)
        return token_logp(hidden[:, :-1], table, tokens[:, 1:], 1.0, bits[:, 1:])[0][0]

    def run(ids, first, allowed=None):
        tokens = np.zeros((1, 128), np.int32)
        tokens[0, : len(ids)] = ids
        bits = np.zeros((1, 128, -(-CONFIG.vocab_size // 8)), np.uint8)
        if allowed is not None:
            bits[0, first : len(ids)] = allowed
        return float(np.mean(np.asarray(logp(tokens, bits))[first - 1 : len(ids) - 1]))

    return run


def test_branches_equal_rows_of_their_own(params, from_scratch):
    """Ragged rows, no branch at all, several at one place, at the end, and one with a mask of allowed tokens."""
    rng = np.random.default_rng(0)
    ids = lambda n: tuple(int(i) for i in rng.integers(1, CONFIG.vocab_size, n))  # noqa: E731
    rows = [ids(n) for n in (9, 30, 17)]
    allowed = np.packbits(rng.random((3, CONFIG.vocab_size)) < 0.5, axis=-1)
    last = ids(5)
    for k, token in enumerate(last[2:]):
        allowed[k, token // 8] |= 128 >> token % 8
    branches = [
        [Branch(1, ids(4), 0), Branch(9, ids(3), 1)],
        [],
        [Branch(5, ids(7), 6), Branch(5, ids(2), 0), Branch(17, last, 2, allowed)],
    ]
    got = branch_logp(CONFIG, params, rows, branches, temperature=1.0, batch=2)
    assert [len(own) for own in got] == [2, 0, 3]
    for row, own, values in zip(rows, branches, got, strict=True):
        for branch, value in zip(own, values, strict=True):
            full = (*row[: branch.start], *branch.ids)
            assert value == pytest.approx(from_scratch(full, branch.start + branch.first, branch.allowed), abs=1e-5)


@every_layout
def test_hindsight_scores_the_response_behind_the_prompt_with_the_final_state(played, params, from_scratch, layout):
    codec, episodes = played[layout]
    for episode in episodes:
        if episode.failure:
            continue
        rows, branches = hindsight_branches(episode, codec, HINT)
        got = [v for own in branch_logp(CONFIG, params, rows, branches, temperature=1.0, batch=4) for v in own]
        assert len(got) == len(episode.steps)
        final, row = episode.steps[-1].after, []
        for t, (step, value) in enumerate(zip(episode.steps, got, strict=True)):
            told = f"it is {final} time {step.before}"
            if t == 0:
                text = codec.prompt.first(episode.task.instruction, told, step.admissible)
            else:
                history = [(s.before, s.action) for s in episode.steps[:t]]
                text = codec.prompt.next(episode.task.instruction, history, told, step.admissible)
            kept = row if layout == "append" else []
            full = [
                *kept,
                *codec.prompt_ids(text, episode.steps[t - 1].response_ids if t else None),
                *step.response_ids,
            ]
            expected = from_scratch(full, len(full) - len(step.response_ids), step.allowed)
            assert value == pytest.approx(expected, abs=1e-5)
            row = [*row, *step.prompt_ids, *step.response_ids]


@every_layout
def test_gold_answers_are_scored_before_every_step_and_at_the_end(played, params, from_scratch, layout):
    codec, episodes = played[layout]
    episode = episodes[0]
    rows, branches = gold_branches(episode, codec, LEAD, "red green")
    got = [v for own in branch_logp(CONFIG, params, rows, branches, temperature=1.0, batch=4) for v in own]
    assert len(got) == len(episode.steps) + 1
    lead, gold, row = codec.text_ids(LEAD), codec.text_ids("red green"), []
    history = [(s.before, s.action) for s in episode.steps]
    end = codec.prompt.next(episode.task.instruction, history, episode.steps[-1].after, ())
    prompts = [list(step.prompt_ids) for step in episode.steps] + [
        codec.prompt_ids(end, episode.steps[-1].response_ids)
    ]
    for prompt, answer, value in zip(prompts, [*(s.response_ids for s in episode.steps), []], got, strict=True):
        full = [*(row if layout == "append" else []), *prompt, *lead, *gold]
        assert value == pytest.approx(from_scratch(full, len(full) - len(gold)), abs=1e-5)
        row = [*row, *prompt, *answer]


@pytest.fixture(scope="module")
def filled(played, params):
    """filled(method, layout) -> the batch with the method's signals, its rows and the state."""

    def run(name, layout, reference=None):
        codec, episodes = played[layout]
        world, method = World(), METHODS[name]
        signals = Signals(
            name, method, world, CONFIG, codec, hint=HINT, lead_in=LEAD, temperature=1.0, max_new=NEW, batch=4
        )
        tx = optimizer(lr=1e-3, warmup=0, weight_decay=0.0, clip_norm=1.0, b2=0.99)
        critic = critic_params(params)
        critic["value"] = jnp.linspace(-1, 1, len(critic["value"]))
        state = new_state(params, tx).replace(critic=new_state(critic, tx))
        batch = credit_batch(episodes, world, Judge(world.library), max_steps=STEPS, context=method.context)
        rows = pack(episodes, max_steps=STEPS, multiple=4)
        return signals(state, lambda: params if reference is None else reference, episodes, rows, batch), rows, state

    return run


@every_layout
def test_token_values_stand_where_their_tokens_are(filled, played, layout):
    batch, rows, state = filled("ppo", layout)
    _, episodes = played[layout]
    values = np.asarray(token_values(CONFIG, state.critic.params, rows))
    assert np.abs(values).max() > 0.1
    lengths = [[len(s.response_ids) for s in e.steps] if not e.failure else [] for e in episodes]
    for r, own in enumerate(lengths):
        assert batch.token_mask[r].sum(axis=1).tolist() == own + [0] * (STEPS - len(own))
    np.testing.assert_array_equal(
        np.where(rows.response_mask, token_advantages(rows, jnp.asarray(batch.token_values)), 0),
        np.where(rows.response_mask, values, 0),
    )
    # A value may not know the token that it stands for.
    other = rows.replace(tokens=np.where(rows.place > 0, 3, rows.tokens))
    first = rows.response_mask & (rows.place == 0) & (np.cumsum(rows.response_mask, axis=1) == 1)
    again = np.asarray(token_values(CONFIG, state.critic.params, other))
    np.testing.assert_allclose(again[first], values[first], atol=1e-5)
    batch.check(METHODS["ppo"].needs)


def test_a_critic_moves_towards_the_returns(filled):
    batch, rows, state = filled("ppo", "append")
    tx = optimizer(lr=3e-3, warmup=0, weight_decay=0.0, clip_norm=1.0, b2=0.99)
    update = make_critic_update(CONFIG, tx, clip=10.0, micro_rows=2)
    critic, losses = new_state(state.critic.params, tx), []
    returns = np.where(batch.token_mask, np.float32(0.7), 0.0)
    for _ in range(25):
        critic, metrics = update(critic, rows, batch.token_values, returns)
        losses.append(float(metrics["value_loss"]))
    assert losses[-1] < 0.2 * losses[0]
    plain = np.asarray(token_values(CONFIG, state.critic.params, rows))[rows.response_mask]
    assert losses[0] == pytest.approx(float(0.5 * np.mean((plain - 0.7) ** 2)), rel=1e-4)


@every_layout
def test_signals_of_every_method_pass_its_checks_and_leave_the_rest_alone(filled, played, layout):
    _, episodes = played[layout]
    for name, method in METHODS.items():
        if name in ("stepsearch", "prm"):  # golden documents, and a language model, have tests of their own
            continue
        batch, _, _ = filled(name, layout)
        batch.check(method.needs)
        for signal in ("gold_logp", "tool", "hindsight_logp", "token_values"):
            assert (getattr(batch, signal) is not None) == (signal in method.needs), (name, signal)
    batch, _, _ = filled("trace", layout)
    for r, episode in enumerate(episodes):
        steps = 0 if episode.failure else len(episode.steps)
        assert batch.tool[r].sum() == max(steps - (not episode.truncated), 0)
        assert (batch.gold_logp[r, : steps + (steps > 0)] < 0).all()


class Library(World):
    """Boxes with golden documents: two for a red box, one for others; every text names each box that it shows."""

    offers = frozenset({"gold answers", "golden documents"})

    def golden(self, task, observations):
        documents = ("red", "blue") if task.payload["goal"] == "red" else ("green",)
        return [[float(d in text) for d in documents] for text in observations], [0.5] * len(observations)


def test_golden_documents_stand_at_their_steps_and_others_are_marked_missing(played, params):
    codec, episodes = played["append"]
    world, method = Library(), METHODS["stepsearch"]
    signals = Signals(
        "stepsearch", dataclasses.replace(method, needs=frozenset({"golden_similarity", "redundancy"})), world, CONFIG,
        codec, hint=HINT, lead_in=LEAD, temperature=1.0, max_new=NEW, batch=4,
    )  # fmt: skip
    assert signals.needed
    plain = credit_batch(episodes, world, Judge(world.library), max_steps=STEPS)
    batch = signals(None, lambda: None, episodes, None, plain)
    assert batch.golden_similarity.shape == (4, STEPS, 2)
    for r, episode in enumerate(episodes):
        steps = [] if episode.failure else episode.steps
        for t, step in enumerate(steps):
            assert batch.golden_similarity[r, t, 0] == float(("green" if r == 3 else "red") in step.after)
        assert (batch.golden_similarity[r, len(steps) :] == -1).all()
        assert batch.redundancy[r].tolist() == [0.5] * len(steps) + [0.0] * (STEPS - len(steps))
    assert (batch.golden_similarity[3, :, 1] == -1).all() and (batch.golden_similarity[0, 0] >= 0).all()


def test_trace_asks_the_frozen_start_and_igpo_the_policy(filled, params):
    other = jax.tree.map(lambda x: 0.5 * x, params)
    assert np.abs(filled("trace", "append", other)[0].gold_logp - filled("trace", "append")[0].gold_logp).max() > 0.01
    np.testing.assert_array_equal(filled("igpo", "append", other)[0].gold_logp, filled("igpo", "append")[0].gold_logp)


@pytest.mark.parametrize(
    ("name", "lacks"), [("igpo", "gold answers"), ("trace", "gold answers"), ("stepsearch", "golden documents")]
)
def test_a_benchmark_without_answers_is_refused_before_anything_is_played(name, lacks, played):
    class Household(World):
        offers = frozenset()

    with pytest.raises(ValueError, match=f"method '{name}' needs {lacks}, and boxes has none; .*searchqa"):
        Signals(
            name, METHODS[name], Household(), CONFIG, played["append"][0], hint=HINT, lead_in=LEAD, temperature=1.0,
            max_new=NEW, batch=4,
        )  # fmt: skip

"""From prompt to packed rows with the published tokenizer and chat template, free decoding and stop strings.

The model has all of the tokenizer's rows and no learning: what follows a token is written into its head.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boxes import COMMANDS, Boxes, task
from tiny import UNTIED, random_params

from trca_jax.agents.prompts import InstructPrompt
from trca_jax.envs.pool import EnvPool
from trca_jax.learner.update import batch_logp
from trca_jax.policy.sampler import Buckets
from trca_jax.policy.tokenizer import check_vocabulary
from trca_jax.policy.tokens import TokenBytes
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.pack import pack

CONFIG = dataclasses.replace(UNTIED, vocab_size=151_936, num_layers=1)
# Other cuts than the tokenizer's own: tags in pieces, one with the action's first letters, one with text behind it.
CHAIN = "<|think|>| look|</|th|ink|>\n| <|action|>\n\n|open| |{}| </|act|ion|>."


@pytest.fixture(scope="module")
def chains(qwen):
    """Ids of the three answers that the model gives, and of the one that it breaks off."""
    pieces = TokenBytes(qwen).pieces
    whole = [[pieces.index(piece.encode()) for piece in CHAIN.format(n).split("|")] for n in "123"]
    return whole, [*whole[0][:4], qwen.eos_token_id]


@pytest.fixture(scope="module")
def params(qwen, chains):
    params = random_params(CONFIG)
    for name in ("o", "down"):  # the hidden state is that of the last token alone
        params["layers"][name]["kernel"] = jnp.zeros_like(params["layers"][name]["kernel"])
    params["norm"]["weight"] = jnp.ones_like(params["norm"]["weight"])
    (newline,) = qwen.encode("\n")
    follows = {(a, b): 20.0 for chain in chains[0] for a, b in zip([newline, *chain], chain, strict=False)}
    follows[tuple(chains[1][-2:])] = 19.0  # about one answer in four is broken off
    sources = sorted({a for a, _ in follows})
    hidden = np.asarray(params["embedding"])[sources]
    hidden /= np.sqrt(np.mean(hidden**2, axis=1, keepdims=True))
    detectors = np.linalg.pinv(hidden).T  # each is 1 on its own hidden state and 0 on the others
    head = np.zeros(params["lm_head"].shape, np.float32)
    for (a, b), logit in follows.items():
        head[b] += logit * detectors[sources.index(a)]
    return params | {"lm_head": jnp.asarray(head)}


@pytest.fixture(scope="module")
def played(qwen, params):
    check_vocabulary(CONFIG.vocab_size, qwen)
    codec = Codec(qwen, InstructPrompt("You act."), 24)
    with EnvPool(Boxes, slots=8, workers=0) as pool:
        collector = Collector(
            CONFIG, codec, pool, max_steps=3, max_new=24, halves=1, buckets=Buckets(chunk=(512,), slots=(512,))
        )
        return codec, collector(params, [task(f"t{n}", "yellow") for n in range(8)], [0] * 8, jax.random.key(0))


def test_answers_are_read_from_the_sampled_tokens(played, chains, qwen):
    codec, episodes = played
    whole, broken = chains
    seen = []
    for step in (step for episode in episodes for step in episode.steps):
        ids = step.response_ids.tolist()
        assert ids in [*whole, broken]
        seen.append(step.action)
        text = codec.decode(ids).text
        if ids == broken:
            assert (step.action, step.action_span, text) == (None, (0, 0), "<think> look<|im_end|>")
            assert step.after == "nothing happens ."
            continue
        assert step.action in COMMANDS and step.after.startswith(f"you {step.action.replace('open', 'open box')} .")
        assert text == f"<think> look</think>\n <action>\n\n{step.action} </action>."
        # '>\n\n' ends the opening tag and ' </' begins the closing one: both hold characters between the tags.
        first, last = step.action_span
        assert [codec.decode([i]).text for i in ids[first:last]] == [">\n\n", "open", " ", step.action[-1], " </"]
        assert qwen.encode(text) != ids  # text would have become other tokens
    assert {None, "open 1", "open 2", "open 3"} == set(seen)


def test_prompts_are_chat_messages_with_the_steps_before(played):
    codec, episodes = played
    for episode in episodes:
        assert len(episode.steps) == 3 and episode.truncated
        history = []
        for step in episode.steps:
            text = codec.prompt.next(episode.task.instruction, history, step.before, COMMANDS)
            whole = codec.decode(step.prompt_ids).text
            assert whole.endswith(f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n")
            history.append((step.before, step.action or ""))


def test_packed_rows_are_scored_as_they_were_sampled(played, params):
    _, episodes = played
    batch = pack(episodes, max_steps=3)
    mask = batch.response_mask
    np.testing.assert_array_equal(
        batch.tokens[mask], np.concatenate([s.response_ids for e in episodes for s in e.steps])
    )
    found = np.asarray(jax.jit(lambda params, batch: batch_logp(CONFIG, params, batch, 1.0)[0])(params, batch))
    np.testing.assert_allclose(found[mask], batch.behaviour_logp[mask], atol=1e-4)
    assert batch.behaviour_logp[mask].min() < -1  # where answers part

"""Conversations as tokens: message by message they are what the chat template makes of the whole."""

import pytest
from fake_world import TOKENIZER, World

from trca_jax.agents.prompts import PROMPTS
from trca_jax.policy.tokens import TokenBytes
from trca_jax.rollout.codec import Codec

PROMPT = PROMPTS["react"](World())
ANSWERS = ("<think>a</think> <action>open 1</action>", "no action", "<think>b</think> <action>open 3</action>")


def conversation(codec, ended):
    """All tokens of three turns and the messages they stand for; ended: answers have the end token behind them."""
    first = PROMPT.first("open the red box", "you see box 1", ())
    ids, messages = codec.prompt_ids(first), [{"role": "user", "content": first}]
    for number, answer in enumerate(ANSWERS):
        sampled = codec.text_ids(answer) + ended
        text = PROMPT.next("open the red box", [("", "")] * (number + 1), f"it is {number}", ())
        ids = [*ids, *sampled, *codec.prompt_ids(text, sampled)]
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": text}]
    return ids, messages


@pytest.mark.parametrize("ended", [False, True])
def test_a_conversation_is_what_the_template_makes_of_all_messages(qwen, ended):
    """Whether an answer ended with a stop string or with the end token, which the template has too."""
    codec = Codec(qwen, PROMPT, 8)
    ids, messages = conversation(codec, [qwen.eos_token_id] * ended)
    assert qwen.decode(ids) == qwen.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)


def test_without_a_template_messages_are_lines():
    codec = Codec(TOKENIZER, PROMPT, 8)
    ids, _ = conversation(codec, [])
    first = PROMPT.first("open the red box", "you see box 1", ())
    lines = [first, *(line for n, answer in enumerate(ANSWERS) for line in (answer, f"Observation: it is {n}"))]
    assert ids == TOKENIZER.encode("\n".join(lines))


def test_answers_are_shown_without_end_token_and_without_bytes_that_are_no_text(qwen):
    codec = Codec(qwen, PROMPT, 8)
    assert codec.text([*qwen.encode("open it"), qwen.eos_token_id]) == "open it"
    broken = TokenBytes(qwen).pieces.index(b"\xf0")
    assert codec.text([*qwen.encode("open"), broken]) == "open\N{REPLACEMENT CHARACTER}"

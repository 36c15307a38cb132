"""Text to ids and back for one agent."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from trca_jax.agents.prompts import Prompt
from trca_jax.policy.tokens import Decoded, TokenBytes, stop_table

_ANSWER = "\N{OBJECT REPLACEMENT CHARACTER}"  # in place of an answer, whose tokens are there already


class Codec:
    """Text to ids and back for one agent; words and commands are encoded once.

    max_new: the most tokens of an answer. Raises ValueError for a tokenizer whose bytes are not known.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Prompt, max_new: int):
        self.prompt, self._tokenizer = prompt, tokenizer
        self._max_new = max_new
        self._bytes = TokenBytes(tokenizer)
        self._encode = functools.lru_cache(maxsize=1 << 16)(self._encode_once)

    def stops(self, vocab_size: int) -> np.ndarray:
        """What ends an answer, for a model of so many ids: the prompt's stop strings, the end token and padding."""
        ends = {self._tokenizer.eos_token_id, self._tokenizer.pad_token_id} - {None}
        return stop_table(self._bytes.pieces, self.prompt.stops, sorted(ends), vocab_size)

    def _encode_once(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def prompt_ids(self, text: str, answer: Sequence[int] | None = None) -> list[int]:
        """The tokens of a prompt. answer: the sampled tokens that it follows, if there are any.

        A fresh prompt is put into the tokenizer's chat template, if there is one; so are a conversation's messages,
        unless they end inside an answer. Without a template these are lines of their own.
        """
        if self.prompt.layout == "stepwise":
            return self.message_ids(text)
        if self.prompt.opened:
            return list(self._encode(text))
        if answer is None:
            return self.message_ids(text if self._tokenizer.chat_template else f"{text}\n")
        if not self._tokenizer.chat_template:
            return list(self._encode(f"\n{text}\n"))
        conversation = [*_message(""), {"role": "assistant", "content": _ANSWER}, *_message(text)]
        behind = self._chat(conversation, tokenize=False).partition(_ANSWER)[2]
        if len(answer) and answer[-1] == self._tokenizer.eos_token_id:
            behind = behind.removeprefix(self._tokenizer.eos_token)
        return list(self._encode(behind))

    def message_ids(self, text: str) -> list[int]:
        """The tokens of a conversation that begins with this message, up to where the answer begins."""
        return list(self._chat(_message(text)) if self._tokenizer.chat_template else self._encode(text))

    def _chat(self, conversation: list[dict[str, str]], **more):
        return self._tokenizer.apply_chat_template(conversation, add_generation_prompt=True, return_dict=False, **more)

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a text as it stands, without a chat template."""
        return list(self._encode(text))

    def decode(self, ids: Sequence[int]) -> Decoded:
        """The text of sampled ids, and where each token lies in it."""
        return self._bytes.decode(ids)

    def text(self, ids: Sequence[int]) -> str:
        """The text of a sampled answer as prompts may show it: without an end token, and with bytes that are no text
        replaced."""
        text, end = self.decode(ids).text, self._tokenizer.eos_token
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return text if end in self.prompt.stops else text.removesuffix(end)

    def answer_ids(self, action: str) -> tuple[int, ...]:
        """The answer that gives this action, as tokens (prompts that end inside the action tag only)."""
        return self._encode(f"{action} </action>")

    def commands(self, admissible: Sequence[str]) -> dict[tuple[int, ...], str]:
        """The answers that constrained decoding may give, and the command that each one is. Left out are commands that
        are longer than an answer can be, and those that a tokenizer of words cannot tell from an earlier one."""
        answers: dict[tuple[int, ...], str] = {}
        for command in admissible:
            if command != "help" and len(ids := self.answer_ids(command)) <= self._max_new:
                answers.setdefault(ids, command)
        return answers

    @property
    def ends_commands(self) -> bool:
        """Whether every command's last token, and no earlier one, is the end token."""
        return self.answer_ids("look")[-1] == self._tokenizer.eos_token_id


def _message(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]

"""The bytes behind token ids: the text of sampled ids with exact places, and the automaton that ends an answer.

A text is never turned into ids again: tags and stop strings are found on the bytes of the ids that were sampled,
however a tokenizer cut them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from tokenizers import decoders, models
from transformers import PreTrainedTokenizerBase

STOPPED = -1
_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class Decoded:
    """The text of n tokens and where each token lies in it; made by `TokenBytes.decode`.

    escaped: the text, with a lone surrogate for every byte that is no UTF-8. edges [n + 1]: the byte at which each
    token begins, and the end.
    """

    escaped: str
    edges: tuple[int, ...]

    @property
    def text(self) -> str:
        """As long as `escaped`, and safe to hand on: U+FFFD in place of every byte that is no UTF-8."""
        return _ESCAPED.sub("\ufffd", self.escaped)

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The tokens [first, last) that hold a part of the characters [start, stop) of the text (0, 0 if none)."""
        if stop <= start:
            return 0, 0
        begin, end = (len(self.escaped[:c].encode("utf-8", "surrogateescape")) for c in (start, stop))
        return bisect_right(self.edges, begin) - 1, bisect_left(self.edges, end)


class TokenBytes:
    """The exact bytes of every token id, of a byte-level BPE tokenizer or of one made of words.

    pieces [ids] bytes. A word's piece begins with the blank that joins it to the word before; the blank in front of a
    text's first word is dropped. Raises ValueError for a tokenizer of another kind.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        backend = tokenizer.backend_tokenizer
        if isinstance(backend.model, models.WordLevel) and backend.decoder is None:
            self._dropped = 1
            piece = lambda token: b" " + token.encode()  # noqa: E731
        elif isinstance(backend.model, models.BPE) and isinstance(backend.decoder, decoders.ByteLevel):
            self._dropped, letters = 0, _byte_letters()
            added = {str(token) for token in tokenizer.added_tokens_decoder.values()}
            # Added tokens are written as they read; the others in letters that stand for bytes.
            piece = lambda token: token.encode() if token in added else token.translate(letters).encode("latin-1")  # noqa: E731
        else:
            raise ValueError(
                f"the tokenizer is of kind {type(backend.model).__name__} with decoder "
                f"{type(backend.decoder).__name__}, expected byte-level BPE as Qwen2.5 has it, or words (WordLevel)"
            )
        vocabulary = tokenizer.get_vocab()
        self.pieces = [b""] * (max(vocabulary.values()) + 1)
        for token, i in vocabulary.items():
            self.pieces[i] = piece(token)

    def decode(self, ids: Sequence[int]) -> Decoded:
        """The text of the ids. Ids behind the vocabulary, which padded embeddings have, are empty."""
        parts = [self.pieces[i] if i < len(self.pieces) else b"" for i in ids]
        edges = (max(edge - self._dropped, 0) for edge in accumulate(map(len, parts), initial=0))
        data = b"".join(parts)[self._dropped :]
        return Decoded(data.decode("utf-8", "surrogateescape"), tuple(edges))


def stop_table(pieces: Sequence[bytes], strings: Sequence[str], ends: Sequence[int], vocab_size: int) -> np.ndarray:
    """The automaton [S, vocab_size] that decides on ids where an answer ends: state ← table[state, token].

    State 0 is an answer's beginning; any other one is the longest beginning of a stop string that the answer ends with.
    STOPPED (-1): a stop string is complete, with or without more text behind it in the same token, or the token is one
    of `ends`. pieces: bytes of the ids, as in `TokenBytes`; ids without bytes leave the state as it is.
    Raises ValueError for an empty stop string.
    """
    if "" in strings:
        raise ValueError(f"stop strings {list(strings)}: an empty one would end every answer; remove it")
    step = _byte_automaton([text.encode() for text in strings])
    lengths = np.zeros(vocab_size, np.int64)
    lengths[: len(pieces)] = [len(piece) for piece in pieces]
    order = np.argsort(-lengths, kind="stable")
    begins, sizes = (np.cumsum(lengths) - lengths)[order], lengths[order]
    data = np.frombuffer(b"".join(pieces), np.uint8)
    state = np.repeat(np.arange(len(step) - 1, dtype=step.dtype)[:, None], vocab_size, axis=1)
    for k in range(sizes[0]):
        longer = np.searchsorted(-sizes, -k)  # the first so many tokens have a byte k
        state[:, :longer] = step[state[:, :longer], data[begins[:longer] + k]]
    table = np.empty_like(state)
    table[:, order] = state
    table[:, list(ends)] = STOPPED
    return table


def _byte_automaton(strings: Sequence[bytes]) -> np.ndarray:
    """[S + 1, 256]: the state after a byte. The last row, which STOPPED indexes, stays at STOPPED."""
    states = sorted({b""} | {text[:n] for text in strings for n in range(len(text))}, key=lambda s: (len(s), s))
    number = {beginning: n for n, beginning in enumerate(states)}
    step = np.zeros((len(states) + 1, 256), np.int8 if len(states) < 128 else np.int16)
    step[-1] = STOPPED
    for n, beginning in enumerate(states):
        if beginning:  # a byte that does not go on with it does what it does behind the longest part that is a state
            step[n] = step[next(number[part] for k in range(n) if (part := beginning[k + 1 :]) in number)]
        for text in strings:
            longer = text[: len(beginning) + 1]
            if text.startswith(beginning) and longer != beginning and step[n, longer[-1]] != STOPPED:
                step[n, longer[-1]] = STOPPED if longer in strings else number[longer]
    return step


def _byte_letters() -> dict[int, int]:
    """Code point to byte of the letters that byte-level BPE writes bytes with: itself where it is printable."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {byte: byte for byte in printable} | {0x100 + n: byte for n, byte in enumerate(others)}

"""Bytes of tokens: the real Qwen2.5 tokenizer and made-up ones; stop strings and spans against scans of the bytes."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from trca_jax.policy.tokenizer import word_tokenizer
from trca_jax.policy.tokens import STOPPED, TokenBytes, stop_table

STOPS = ("</action>", "</search>", "</answer>")
# Cut in the middle of tags and letters, with text behind a tag, and an id without bytes.
PIECES = [
    *(b"<", b"/", b"action", b">", b"</", b"</act", b"ion>", b">\n", b"<</", b" go", b" ", b"\xc3", b"\xa9", b""),
    *(b"answer", b"search>x", b"\xf0\x9f", b"\x98\x80", b"</action></action>", "好".encode(), b"a"),
]
END = len(PIECES)
WORDS = word_tokenizer(["go to desk 1 a"])


@pytest.fixture(scope="module")
def bytes_of(qwen):
    return TokenBytes(qwen)


@pytest.fixture(scope="module")
def table(qwen, bytes_of):
    begin = time.process_time()
    table = stop_table(bytes_of.pieces, STOPS, [qwen.eos_token_id], 151_936)
    assert time.process_time() - begin < 2
    assert table.shape == (20, 151_936) and table.dtype == np.int8
    return table


class Pieces(TokenBytes):
    """As a byte-level tokenizer with these pieces."""

    def __init__(self):
        self.pieces, self._dropped = PIECES, 0


def run(table, ids):
    """How many tokens the automaton takes, None if it never stops."""
    state = 0
    for n, i in enumerate(ids, 1):
        state = table[state, i]
        if state == STOPPED:
            return n
    return None


def scan(pieces, ids, strings, ends=()):
    """The same by looking at the text after every token."""
    for n in range(1, len(ids) + 1):
        text = b"".join(pieces[i] for i in ids[:n] if i not in ends)
        if ids[n - 1] in ends or any(s.encode() in text for s in strings):
            return n
    return None


def overlap(pieces, ids, text, start, stop):
    """Token by token: which share a byte with characters [start, stop)."""
    edges = np.cumsum([0, *(len(pieces[i]) for i in ids)])
    first, last = (len(text[:c].encode(errors="surrogateescape")) for c in (start, stop))
    return [i for i, (a, b) in enumerate(pairwise(edges)) if max(a, first) < min(b, last)]


class TestStops:
    table = stop_table(PIECES, STOPS, [END], END + 3)

    @given(st.lists(st.integers(0, END), max_size=20))
    @example([4, 2, 3])
    @example([0, 4, 2, 7])  # a tag that begins again, and text behind it
    @example([5, 13, 6])
    @example([8, 14, 3])
    @example([18])
    @example([END])
    def test_an_answer_ends_where_its_bytes_say(self, ids):
        assert run(self.table, ids) == scan([*PIECES, b""], ids, STOPS, [END])

    @given(
        st.lists(st.text("ab</", min_size=1, max_size=4), min_size=1, max_size=3),
        st.lists(st.binary(max_size=3), min_size=1, max_size=6),
        st.data(),
    )
    def test_any_stop_strings(self, strings, more, data):
        """Also where one is a part of another."""
        pieces = [b"a", b"b", b"<", b"/", b"ab", b"ba", b"</", b"aab", *more]
        ids = data.draw(st.lists(st.integers(0, len(pieces) - 1), max_size=12))
        assert run(stop_table(pieces, strings, [], len(pieces)), ids) == scan(pieces, ids, strings)

    def test_it_is_small_and_ids_behind_the_vocabulary_change_nothing(self):
        assert self.table.dtype == np.int8 and self.table.shape[1] == END + 3
        # "", "</", "</a", and so on: 1 + 2 + the rest of three tags that share nothing more, but "</a" of two.
        assert len(self.table) == 1 + 2 + 6 + 6 + 5
        states = np.arange(len(self.table))
        np.testing.assert_array_equal(self.table[:, END + 1 :], np.stack([states, states], 1))
        assert len(stop_table([b"a"], ["x" * 500], [], 1)) == 500  # more states than int8 has
        np.testing.assert_array_equal(stop_table([], [], [1], 3), [[0, STOPPED, 0]])

    def test_an_empty_stop_string_is_refused(self):
        with pytest.raises(ValueError, match="an empty one would end every answer"):
            stop_table(PIECES, ["</action>", ""], [], END)


class TestDecoding:
    @given(st.lists(st.integers(0, END - 1), max_size=14), st.tuples(st.integers(0, 60), st.integers(0, 60)))
    @example([16, 17, 11, 16, 12], (1, 3))
    def test_a_span_is_what_a_scan_of_all_tokens_finds(self, ids, cut):
        decoded = Pieces().decode(ids)
        start, stop = sorted(min(c, len(decoded.text)) for c in cut)
        first, last = decoded.span(start, stop)
        expected = overlap(PIECES, ids, decoded.escaped, start, stop)
        assert [i for i in range(first, last) if PIECES[ids[i]]] == expected
        assert not expected or (first, last) == (expected[0], expected[-1] + 1)

    def test_a_letter_cut_in_two_belongs_to_both_tokens(self):
        decoded = Pieces().decode([20, 16, 17, 20])
        assert decoded.text == "a😀a"
        assert [decoded.span(n, n + 1) for n in range(3)] == [(0, 1), (1, 3), (3, 4)]

    def test_bytes_that_are_no_text_are_replaced_one_by_one(self):
        decoded = Pieces().decode([11, 11, 12, 16, 20])
        assert decoded.text == "\ufffdé\ufffd\ufffda"  # as long as what the places were counted in
        assert decoded.span(0, 1) == (0, 1) and decoded.span(3, 4) == (3, 4) and decoded.span(4, 5) == (4, 5)

    def test_tokens_that_straddle_a_tag_belong_to_the_action(self):
        """'<', 'action', '>', ' go', ' ', 'a', '<</', 'action', '>': the seventh ends the action and begins the tag."""
        ids = [0, 2, 3, 9, 10, 20, 8, 2, 3]
        decoded = Pieces().decode(ids)
        assert decoded.text == "<action> go a<</action>"
        start, stop = decoded.text.index("> ") + 1, decoded.text.index("</")
        assert decoded.span(start, stop) == (3, 7)
        assert decoded.span(start, stop - 1) == (3, 6)
        assert decoded.span(stop, stop) == (0, 0)


class TestWords:
    @given(st.lists(st.integers(0, len(WORDS) - 1), max_size=9), st.tuples(st.integers(0, 60), st.integers(0, 60)))
    def test_words_are_joined_by_blanks(self, ids, cut):
        decoded = TokenBytes(WORDS).decode(ids)
        assert decoded.text == WORDS.decode(ids)
        ends = [len(WORDS.decode(ids[:n])) for n in range(len(ids) + 1)]
        start, stop = sorted(min(c, len(decoded.text)) for c in cut)
        assume(start < stop)
        expected = [i for i in range(len(ids)) if ends[i] < stop and start < ends[i + 1]]
        assert decoded.span(start, stop) == (expected[0], expected[-1] + 1)

    def test_the_blank_before_a_closing_tag_belongs_to_the_tag(self):
        ids = WORDS.encode("a <action> go to desk 1 </action> a")
        decoded = TokenBytes(WORDS).decode(ids)
        start, stop = decoded.text.index("<action>") + 8, decoded.text.index("</action>")
        assert decoded.span(start, stop) == (2, 7)

    def test_a_stop_string_is_found_in_words(self):
        table = stop_table(TokenBytes(WORDS).pieces, STOPS, [], len(WORDS))
        assert run(table, WORDS.encode("go </action> a")) == 2

    def test_another_kind_of_tokenizer_is_refused(self):
        other = Tokenizer(models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
        other.decoder = decoders.WordPiece()
        with pytest.raises(ValueError, match="of kind WordPiece with decoder WordPiece, expected byte-level BPE"):
            TokenBytes(PreTrainedTokenizerFast(tokenizer_object=other, unk_token="[UNK]"))


class TestQwen:
    @given(data=st.data())
    def test_any_ids_decode_as_the_tokenizer_decodes_them(self, qwen, bytes_of, data):
        ids = data.draw(st.lists(st.integers(0, len(qwen) - 1), max_size=12))
        raw = b"".join(bytes_of.pieces[i] for i in ids)
        assert raw.decode(errors="replace") == qwen.decode(ids)
        assert bytes_of.decode(ids).escaped.encode(errors="surrogateescape") == raw

    @given(text=st.text(max_size=30))
    @example("好的，把杯子放在桌子上 👩‍👩‍👧 é\u0301 <|im_end|>\n")
    def test_text_comes_back_and_every_byte_is_in_one_token(self, qwen, bytes_of, text):
        ids = qwen.encode(text, add_special_tokens=False)
        decoded = bytes_of.decode(ids)
        assert decoded.text == qwen.backend_tokenizer.normalizer.normalize_str(text)
        for n in range(len(decoded.text)):
            first, last = decoded.span(n, n + 1)
            assert list(range(first, last)) == overlap(bytes_of.pieces, ids, decoded.escaped, n, n + 1)

    @pytest.mark.parametrize("ending", ["", "\n", ".", ">", " <|im_end|>", "</action>", "😀"])
    @pytest.mark.parametrize("before", ["go to desk 1", "看看", "a<", "</", "</act", "", "😀"])
    def test_a_stop_string_ends_an_answer_however_it_is_cut(self, qwen, bytes_of, table, before, ending):
        text = f"<think>x</think><action>{before}</action>{ending}"
        whole = qwen.encode(text, add_special_tokens=False)
        single = [bytes_of.pieces.index(bytes([byte])) for byte in text.encode()]
        for ids in (whole, single):
            assert run(table, ids) == scan(bytes_of.pieces, ids, STOPS)
        kept = bytes_of.decode(whole[: run(table, whole)]).text
        assert "</action>" in kept and kept.index("</action>") == text.index("</action>")

    def test_the_tokens_of_an_action(self, qwen, bytes_of):
        ids = qwen.encode("<think>👩‍👩‍👧</think><action>take 杯子 1</action>\n", add_special_tokens=False)
        decoded = bytes_of.decode(ids)
        start, stop = decoded.text.index("<action>") + 8, decoded.text.index("</action>")
        first, last = decoded.span(start, stop)
        assert bytes_of.decode(ids[first:last]).text == "take 杯子 1"

    def test_the_end_token_ends_and_unused_rows_do_nothing(self, qwen, table):
        assert (table[:, qwen.eos_token_id] == STOPPED).all()
        np.testing.assert_array_equal(table[:, len(qwen) :], np.arange(20)[:, None] * np.ones(151_936 - len(qwen)))

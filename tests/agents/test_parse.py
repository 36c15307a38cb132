"""Reading answers: every way to be malformed, and the tokens of an action against a scan of all prefixes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trca_jax.agents.parse import Parsed, parse, token_span


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("<action>go to desk 1</action>", "go to desk 1"),
        ("I see. <action>\n Go To\tDesk 1 </action> more", "go to\tdesk 1"),
        ("<action>take mug</action><action>drop mug</action>", "take mug"),
        ("</action><action>look</action>", "look"),  # a closing tag before the opening one is no end
        ("<action><action>look</action>", "<action>look"),
        ("<action>look", None),
        ("look</action>", None),
        ("<action></action>", None),
        ("<action> \n </action>", None),
        ("<Action>look</Action>", None),
        ("好 <action>look</action>", None),
        ("<action>看</action>", None),
        ("", None),
        ("</action>", None),
    ],
)
def test_actions_between_tags(answer, action):
    parsed = parse(answer)
    assert parsed.action == action
    if action is None:
        assert parsed == Parsed(None, 0, 0)
    else:
        assert answer[parsed.start : parsed.stop].strip().lower() == action
        assert answer[: parsed.start].endswith("<action>") and answer[parsed.stop :].startswith("</action>")


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("go to desk 1 </action>", "go to desk 1"),
        ("look</action> and more", "look"),
        ("go to desk 1", None),
        ("</action>", None),
        ("  </action>", None),
        ("看 </action>", None),
    ],
)
def test_answers_that_begin_inside_the_tag(answer, action):
    parsed = parse(answer, opened=True)
    assert parsed.action == action
    assert (parsed.start, parsed.stop) == (0, 0 if action is None else answer.index("</action>"))


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ("<think>so</think><action>look</action>", True),
        ("<action>look</action><think>late</think>", True),
        ("<think>so<action>look</action>", False),
        ("so</think><action>look</action>", False),
        ("<action>look</action>", False),
        ("<think>so</think>", False),
    ],
)
def test_thinking_may_be_required(answer, valid):
    assert (parse(answer, think=True).action == "look") == valid


def scan(ids, decode, start, stop):
    """Tokens one by one: the characters that each adds to the text before it."""
    ends = [len(decode(ids[:n])) for n in range(len(ids) + 1)]
    return [i for i in range(len(ids)) if ends[i] < stop and start < ends[i + 1] and ends[i] < ends[i + 1]]


def words(ids):
    """Word-level: words joined by blanks."""
    vocabulary = ["go", "to", "desk", "1", "<action>", "</action>", "a"]
    return " ".join(vocabulary[i % len(vocabulary)] for i in ids)


def pieces(ids):
    """Byte-pair-like: pieces with blanks inside, tags cut in the middle, and two bytes of one letter."""
    vocabulary = [b"<", b"action", b">", b"</", b" go", b" to desk", b" ", b"1", b"><", b"\xc3", b"\xa9", b""]
    return b"".join(vocabulary[i % len(vocabulary)] for i in ids).decode(errors="replace")


@pytest.mark.parametrize("decode", [words, pieces])
@given(ids=st.lists(st.integers(0, 11), max_size=14), cut=st.tuples(st.integers(0, 60), st.integers(0, 60)))
@example(ids=[6, 10, 4], cut=(1, 2))
def test_a_span_is_what_a_scan_of_all_tokens_finds(decode, ids, cut):
    text = decode(ids)
    start, stop = sorted(min(c, len(text)) for c in cut)
    first, last = token_span(ids, decode, start, stop)
    expected = scan(ids, decode, start, stop) if stop > start else []
    if not expected:
        assert first == last == 0
        return
    inside = [i for i in range(first, last) if len(decode(ids[:i])) < len(decode(ids[: i + 1]))]
    assert inside == expected
    assert first == expected[0]


def test_the_tokens_of_an_action_in_words():
    ids = [6, 4, 0, 1, 2, 3, 5, 6]
    text = words(ids)
    assert text == "a <action> go to desk 1 </action> a"
    parsed = parse(text)
    # The blank before the closing tag is text between the tags and belongs to the closing word.
    assert token_span(ids, words, parsed.start, parsed.stop) == (2, 7)


def test_the_tokens_of_an_action_in_pieces():
    """'<', 'action', '>', ' go', ' to desk', ' ', '1', '</', 'action', '>': the tags' own tokens stay out."""
    ids = [0, 1, 2, 4, 5, 6, 7, 3, 1, 2]
    parsed = parse(pieces(ids))
    assert parsed.action == "go to desk 1"
    assert token_span(ids, pieces, parsed.start, parsed.stop) == (3, 7)
    # A token that straddles the opening tag counts: '><' ends the tag and begins the action.
    ids = [0, 1, 8, 7, 3, 1, 2]
    parsed = parse(pieces(ids))
    assert pieces(ids) == "<action><1</action>" and parsed.action == "<1"
    assert token_span(ids, pieces, parsed.start, parsed.stop) == (2, 4)


def test_only_a_few_prefixes_are_decoded():
    calls = []

    def decode(ids):
        calls.append(len(ids))
        return words(ids)

    token_span([0] * 1000, decode, 1500, 1600)
    assert len(calls) <= 2 * 11

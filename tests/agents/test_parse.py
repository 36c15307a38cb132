"""Reading answers: every way to be malformed."""

import pytest

from trca_jax.agents.parse import Parsed, parse


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


def test_bytes_that_are_no_text_become_question_marks():
    """Prompts show earlier actions, and tokenizers take text alone."""
    answer = b"<action>open \xff box</action>".decode("utf-8", "surrogateescape")
    assert parse(answer) == Parsed("open ? box", 8, 18)

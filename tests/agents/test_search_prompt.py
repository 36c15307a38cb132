"""Prompts for a search engine, and how the answers to them are read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.agents.parse import Parsed, parse_blocks
from trca_jax.agents.prompts import PROMPTS
from trca_jax.agents.search_prompt import BLOCKS, SearchDialogue, SearchPrompt
from trca_jax.envs.registry import make_benchmark
from trca_jax.envs.searchqa.actions import project

HISTORY = [("Who?", "<search>a</search>"), ("found a", ""), ("", "<search>b</search>")]


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("<think>hm</think><search> Ada </search> so", "<search> Ada </search>"),
        ("<action><ANSWER>Rome</ANSWER></action>", "<ANSWER>Rome</ANSWER>"),
        ("<answer>a</answer> or <search>b</search>", "<answer>a</answer> or <search>b</search>"),
        ("<search></search>", "<search></search>"),
        ("</search><search>a</search>", "</search><search>a</search>"),
        ("<search>a", None),
        ("<search>a</answer>", None),
        ("</search> <search>", None),
        ("<action>look</action>", None),
        ("", None),
    ],
)
def test_blocks(answer, action):
    parsed = parse_blocks(answer, BLOCKS)
    assert parsed.action == action
    assert (
        parsed == Parsed(action, answer.index(action), answer.index(action) + len(action))
        if action
        else not parsed.stop
    )


def test_what_is_read_is_executed_as_the_whole_response_would_be(shared_data):
    cases = json.loads((shared_data / "searchqa" / "golden_em.json").read_bytes())["projection"]
    assert len(cases) == 14
    for case in cases:
        response = case["action_text"]
        assert project(SearchPrompt("R.").read(response).action or "") == project(response)


@given(st.lists(st.sampled_from(["<search>", "</search>", "<answer>", "</answer>", "</SEARCH>", "x", " "]), max_size=9))
def test_reading_loses_nothing_that_counts(pieces):
    response = "".join(pieces)
    action = parse_blocks(response, BLOCKS).action
    if action is None:
        assert not project(response).kind
    else:
        assert project(action) == project(response)


def test_a_fresh_prompt_shows_every_step_with_what_it_found():
    text = SearchPrompt("You search.").next("Who?", HISTORY, "found b", ())
    lines = text.splitlines()
    assert lines[:2] == ["You search.", "Question: Who?"]
    assert "taken 3 step(s)" in lines[2]
    assert lines[3:6] == ["Step 1: <search>a</search> found a", "Step 2:  ", "Step 3: <search>b</search> found b"]
    assert "Step 2" not in SearchPrompt("You search.", 1).next("Who?", HISTORY, "found b", ())
    first = SearchPrompt("You search.").first("Who?", "Who?", ())
    assert first.count("Who?") == 1 and "Step" not in first
    with pytest.raises(ValueError, match="prompt history -1 must be at least 0"):
        SearchPrompt("R.", -1)


def test_a_conversation_adds_what_was_found():
    prompt = PROMPTS["search-r1"](make_benchmark("searchqa"))
    assert isinstance(prompt, SearchDialogue) and (prompt.layout, prompt.opened) == ("append", False)
    first = prompt.first("Who?", "Who?", ())
    assert first.endswith("Question: Who?\n") and first.startswith("You answer questions")
    assert prompt.next("Who?", HISTORY, "<information>x</information>", ()) == "\n\n<information>x</information>\n\n"


def test_without_a_search_engine_nothing_is_said_of_one():
    text = PROMPTS["reason"](make_benchmark("searchqa", retriever="")).first("Who?", "Who?", ())
    assert "search" not in text and text.startswith("You answer questions. ") and text.endswith("Question: Who?\n")


@pytest.mark.parametrize("name", ["search", "search-r1", "reason"])
def test_answers_stop_behind_a_block(name):
    assert PROMPTS[name](make_benchmark("searchqa")).stops == ("</search>", "</answer>")

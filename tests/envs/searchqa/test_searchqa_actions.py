"""What a response asks for, against the public projection's verdicts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.envs.searchqa.actions import ANSWER, NOTHING, SEARCH, Action, project


def test_the_recorded_projections(shared_data):
    cases = json.loads((shared_data / "searchqa" / "golden_em.json").read_text())["projection"]
    assert len(cases) == 14
    for case in cases:
        action = project(case["action_text"])
        assert (str(action), action.valid) == (case["projected"], bool(case["valid"])), case["action_text"]


@pytest.mark.parametrize(
    ("response", "action"),
    [
        ("<action><search>Ada</search></action>", Action(SEARCH, "Ada", True)),
        ("<ANSWER>Ada</ANSWER>", Action(ANSWER, "Ada", True)),
        ("<answer>yes</answer> then </search>", Action(ANSWER, "yes", True)),
        ("done </SEARCH> <search>late</search>", Action(NOTHING, "", False)),
        ("<answer> </answer>", Action(ANSWER, "", True)),
        ("<answer>a</answer><SEARCH>b</search>", Action(SEARCH, "b", False)),
        ("<search>one</answer>", Action(NOTHING, "", False)),
    ],
)
def test_projections_by_hand(response, action):
    assert project(response) == action


def test_an_answer_of_a_hundred_thousand_characters_is_kept_whole():
    assert project(f"<answer>{'x' * 100_000}</answer>").argument == "x" * 100_000
    assert project("<search>" * 20_000) == Action(NOTHING, "", False)


@given(st.text(alphabet="ab <>/", max_size=60).map(lambda text: text.replace("a", "search").replace("b", "answer")))
def test_an_action_projects_to_itself_and_a_valid_one_holds_one_opening_tag(response):
    action = project(response)
    again = project(str(action))
    assert (again.kind, again.argument) == (action.kind, action.argument)
    assert not action.valid or response.count("<search>") + response.count("<answer>") == 1

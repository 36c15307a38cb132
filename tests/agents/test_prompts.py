"""What the policy is shown: short texts, the last steps with their numbers, and nothing that is hidden."""

import pytest

from trca_jax.agents.prompts import PROMPTS, InstructPrompt, WordPrompt
from trca_jax.envs.alfworld.brief import brief
from trca_jax.envs.registry import make_benchmark

COMMANDS = ("go to desk 1", "help", "look")
HISTORY = [(f"saw {k}", f"did {k}") for k in range(1, 6)]


def test_a_conversation_of_words_shows_the_task_once_and_ends_inside_the_tag():
    prompt = WordPrompt(brief)
    first = prompt.first("put a mug on the desk.", "You are here. Your task is to: put a mug on the desk.", COMMANDS)
    assert first == "task put mug desk scene here <action>"
    assert prompt.next("put a mug on the desk.", HISTORY, "You open it.", COMMANDS) == "open <action>"
    assert (prompt.layout, prompt.opened) == ("append", True)


@pytest.mark.parametrize("history", [0, 1, 2, 5, 9])
def test_a_fresh_prompt_numbers_the_last_steps_by_their_place_in_the_episode(history):
    text = InstructPrompt("You act.", history).next("put a mug on the desk", HISTORY, "now", COMMANDS)
    shown = range(max(1, 6 - history), 6)
    for k in range(1, 6):
        line = f"Observation {k}: saw {k}\nAction {k}: did {k}\n"
        assert (line in text) == (k in shown)
        assert (f"saw {k}" in text) == (k in shown)
    assert "You have taken 5 actions so far." in text
    lines = text.splitlines()
    assert lines[0] == "You act."
    assert lines[1] == "Task: put a mug on the desk"
    assert lines[-3:-1] == ["Current observation: now", "Possible actions: 'go to desk 1', 'look'"]
    assert "<action> </action>" in lines[-1] and "<think> </think>" in lines[-1]


def test_the_first_fresh_prompt_has_no_history():
    text = InstructPrompt("You act.").first("find a mug", "a room", COMMANDS)
    assert "taken" not in text and "Observation 1" not in text
    assert text == InstructPrompt("You act.").next("find a mug", [], "a room", COMMANDS)
    assert (InstructPrompt.layout, InstructPrompt.opened) == ("stepwise", False)


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_holds_only_what_it_was_given(name):
    """Every word is of the instruction, the observations, the actions, the commands, or the prompt's fixed words."""
    prompt = PROMPTS[name](make_benchmark("alfworld"))
    fixed = set(prompt.next("", [("", "")] * 3, "", ()).lower().split())
    fixed |= set(prompt.first("", "", ()).lower().split()) | {"4", "5", "4:", "5:"}
    given = {"alpha", "beta", "'gamma'", "saw", "did", "1", "2", "3"}
    text = prompt.first("alpha", "beta", ("gamma",)) + " " + prompt.next("alpha", HISTORY, "beta", ("gamma",))
    assert set(text.lower().split()) <= fixed | given


def test_a_negative_history_is_refused():
    with pytest.raises(ValueError, match="prompt history -1 must be at least 0"):
        InstructPrompt("You act.", -1)

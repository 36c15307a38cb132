"""The ReAct prompt, and the worked examples: each is an episode that its own benchmark would have answered so."""

import pytest
from boxes import COMMANDS
from fake_world import World

from trca_jax.agents.parse import parse
from trca_jax.agents.prompts import PROMPTS
from trca_jax.envs.base import Task
from trca_jax.envs.registry import make_benchmark

BENCHMARKS = ("alfworld", "webshop")


def test_a_conversation_begins_with_role_actions_example_and_task_and_goes_on_with_observations():
    prompt = PROMPTS["react"](World())
    text = prompt.first("open the red box", "you see box 1 .", COMMANDS)
    assert text.splitlines() == [
        "You open boxes.",
        text.splitlines()[1],
        "Actions, with other words in place of those in braces: open {number}, wait, help",
        "",
        "This is how another task was solved.",
        "Task: open the blue box",
        "Observation: you see box 1 box 2 .",
        "<think>Box 2 may be blue.</think>",
        "<action>open 2</action>",
        "",
        "Now your own task begins.",
        "Task: open the red box",
        "Observation: you see box 1 .",
    ]
    assert prompt.next("open the red box", [("a", "b")], "it is red .", COMMANDS) == "Observation: it is red ."
    assert (prompt.layout, prompt.opened, prompt.think, prompt.stops) == ("append", False, True, ("</action>",))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_turns_of_an_example_are_answers_as_they_are_asked_for(name):
    benchmark = make_benchmark(name)
    text = PROMPTS["react"](benchmark).first("a task", "here", ())
    for _, thought, action in benchmark.example.turns:
        answer = f"<think>{thought}</think>\n<action>{action}</action>"
        assert answer in text and parse(answer, think=True).action == action
        assert benchmark.declaration.template(action) != "no command"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_an_example_reads_as_the_benchmark_does(name):
    """Its adapter understands every answer, and the task is one that it can bind."""
    benchmark = make_benchmark(name)
    example = benchmark.example
    task = Task("x", name, example.instruction, "", None)
    assert benchmark.bind(task)
    adapter = benchmark.adapter(task, example.turns[0][0])
    for (_, _, action), (seen, _, _) in zip(example.turns, example.turns[1:], strict=False):
        facts = adapter.transition(action, seen, (action, "search[<your query>]"))
        assert facts["parsed"] and facts["accepted"] is True, (action, seen)

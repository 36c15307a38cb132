"""ReAct: one growing conversation of thoughts, actions and observations, with a worked example in front."""

from __future__ import annotations

from collections.abc import Sequence

from trca_jax.agents.parse import CLOSE, Parsed, parse
from trca_jax.envs.base import Example

_HOW = (
    "In every turn you are given an observation. First think inside <think> </think> about what you know and what to "
    "do next, then give exactly one action inside <action> </action>, and wait for the next observation."
)


class ReactPrompt:
    """The append layout of instruct models: the example, the task, and then observations; all turns stay in sight.

    role: the sentence that it begins with, as `Benchmark.role`. actions: templates of the commands; those on offer are
    not listed, as in the original. example: as `Benchmark.example`. Source: spec/methods.md section 9.4.
    """

    layout, opened, messages, stops, whole = "append", False, True, (CLOSE,), False

    def __init__(self, role: str, actions: Sequence[str], example: Example):
        turns = [
            f"Observation: {seen}\n<think>{thought}</think>\n<action>{action}</action>"
            for seen, thought, action in example.turns
        ]
        self._opening = "\n".join(
            [
                role, _HOW, "Actions, with other words in place of those in braces: " + ", ".join(actions), "",
                "This is how another task was solved.", f"Task: {example.instruction}", *turns, "",
                "Now your own task begins.",
            ]
        )  # fmt: skip

    def first(self, instruction, observation, admissible):
        return f"{self._opening}\nTask: {instruction}\nObservation: {observation}"

    def next(self, instruction, history, observation, admissible):
        return f"Observation: {observation}"

    def read(self, answer: str) -> Parsed:
        """Answers must reason, too."""
        return parse(answer, think=True)

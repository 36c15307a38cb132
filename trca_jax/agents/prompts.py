"""What the policy is shown before each action, in two layouts.

Append: one growing conversation; a turn adds the new observation only, and the model's cache is kept. Stepwise: every
turn is a fresh prompt with a short history and the commands on offer, as most published agents are trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from trca_jax.agents.parse import CLOSE, Parsed, parse
from trca_jax.agents.react import ReactPrompt
from trca_jax.agents.search_prompt import ReasonPrompt, SearchDialogue, SearchPrompt
from trca_jax.envs.base import Benchmark


class Prompt(Protocol):
    """layout: 'append' or 'stepwise'. opened: the prompt ends inside `<action>`. messages: what is added to a row is a
    message of its own; otherwise it goes on where the answer ended. stops: texts that end an answer as soon as they are
    complete. whole: environments get the whole answer, as they read its blocks themselves and may judge its form;
    otherwise the action alone."""

    layout: str
    opened: bool
    messages: bool
    stops: tuple[str, ...]
    whole: bool

    def first(self, instruction: str, observation: str, admissible: Sequence[str]) -> str:
        """The text before the first action."""

    def next(
        self, instruction: str, history: Sequence[tuple[str, str]], observation: str, admissible: Sequence[str]
    ) -> str:
        """The text before a later action: what is added to the row (append), or all of it (stepwise).
        history: all earlier (observation, action) pairs."""

    def read(self, answer: str) -> Parsed:
        """The action of an answer to this prompt."""


class WordPrompt:
    """The append layout of tiny policies: texts in few words, actions between tags, no list of commands.

    brief: makes a text shorter, as `Benchmark.brief`.
    """

    layout, opened, messages, stops, whole = "append", True, False, (CLOSE,), False

    def __init__(self, brief: Callable[[str], str]):
        self._brief = brief

    def first(self, instruction, observation, admissible):
        scene = "" if observation == instruction else self._brief(observation)  # some worlds begin with the task alone
        return f"task {self._brief(instruction)} scene {scene} <action>"

    def next(self, instruction, history, observation, admissible):
        return f"{self._brief(observation)} <action>"

    def read(self, answer: str) -> Parsed:
        return parse(answer, opened=True)


class InstructPrompt:
    """The stepwise layout of instruct models: task, last steps, current observation, commands, and how to answer.

    role: the sentence that it begins with, as `Benchmark.role`. history: steps that are shown. Raises ValueError for
    less than 0.
    """

    layout, opened, messages, stops, whole = "stepwise", False, True, (CLOSE,), False

    def __init__(self, role: str, history: int = 2):
        if history < 0:
            raise ValueError(f"prompt history {history} must be at least 0 steps")
        self._role, self._history = role, history

    def first(self, instruction, observation, admissible):
        return self.next(instruction, (), observation, admissible)

    def next(self, instruction, history, observation, admissible):
        lines = [self._role, f"Task: {instruction}"]
        if history:
            shown = list(enumerate(history, 1))[len(history) - min(self._history, len(history)) :]
            lines.append(f"You have taken {len(history)} actions so far. The latest ones:")
            lines += [f"Observation {k}: {seen}\nAction {k}: {action}" for k, (seen, action) in shown]
        lines += [
            f"Current observation: {observation}",
            "Possible actions: " + ", ".join(f"'{command}'" for command in admissible if command != "help"),
            "Think step by step inside <think> </think>, then give one possible action inside <action> </action>.",
        ]
        return "\n".join(lines)

    def read(self, answer: str) -> Parsed:
        """Answers must reason, too."""
        return parse(answer, think=True)


# What agent.prompt may be: how each is made for a benchmark.
PROMPTS: dict[str, Callable[[Benchmark], Prompt]] = {
    "word": lambda benchmark: WordPrompt(benchmark.brief),
    "instruct": lambda benchmark: InstructPrompt(benchmark.role),
    "react": lambda benchmark: ReactPrompt(benchmark.role, benchmark.declaration.actions, benchmark.example),
    "search": lambda benchmark: SearchPrompt(benchmark.role),
    "search-r1": lambda benchmark: SearchDialogue(benchmark.role),
    "reason": lambda benchmark: ReasonPrompt(benchmark.role),
}

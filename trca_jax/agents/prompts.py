"""What the policy is shown before each action, in two layouts.

Append: one growing conversation; a turn adds the new observation only, and the model's cache is kept. Stepwise: every
turn is a fresh prompt with a short history and the commands on offer, as most published agents are trained.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from trca_jax.agents.parse import CLOSE

_DROP = re.compile(r"-=.*?=-|[^\w\s]")
_TWICE = re.compile(r"\b(\w+ \d+) \1\b")
_EMPTY_WORDS = frozenset(
    "a an the you your and is it are of in on to at that arrive looking quickly around middle room next pick up"
    .split()
)  # fmt: skip


def compact(text: str) -> str:
    """The text in lower case without punctuation, banners, empty words and names said twice in a row.

    >>> compact("You arrive at shelf 1. On the shelf 1, you see a mug 2, and a pen 1.")
    'shelf 1 see mug 2 pen 1'
    """
    words = (word for word in _DROP.sub(" ", text.lower()).split() if word not in _EMPTY_WORDS)
    return _TWICE.sub(r"\1", " ".join(words))


class Prompt(Protocol):
    """layout: 'append' or 'stepwise'. opened: the prompt ends inside `<action>`. think: answers must reason first.
    stops: texts that end an answer as soon as they are complete."""

    layout: str
    opened: bool
    think: bool
    stops: tuple[str, ...]

    def first(self, instruction: str, observation: str, admissible: Sequence[str]) -> str:
        """The text before the first action."""

    def next(
        self, instruction: str, history: Sequence[tuple[str, str]], observation: str, admissible: Sequence[str]
    ) -> str:
        """The text before a later action: what is added to the row (append), or all of it (stepwise).
        history: all earlier (observation, action) pairs."""


class WordPrompt:
    """The append layout of tiny policies: compact observations, actions between tags, no list of commands."""

    layout, opened, think, stops = "append", True, False, (CLOSE,)

    def first(self, instruction, observation, admissible):
        # The task text stands in the first observation of some worlds; it is shown once, in front.
        scene = observation.split("Your task is to:")[0]
        return f"task {compact(instruction)} scene {compact(scene)} <action>"

    def next(self, instruction, history, observation, admissible):
        return f"{compact(observation)} <action>"


class InstructPrompt:
    """The stepwise layout of instruct models: task, last steps, current observation, commands, and how to answer."""

    layout, opened, think, stops = "stepwise", False, True, (CLOSE,)

    def __init__(self, history: int = 2):
        if history < 0:
            raise ValueError(f"prompt history {history} must be at least 0 steps")
        self._history = history

    def first(self, instruction, observation, admissible):
        return self.next(instruction, (), observation, admissible)

    def next(self, instruction, history, observation, admissible):
        lines = ["You act in a text world to complete a household task.", f"Task: {instruction}"]
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


PROMPTS = {"word": WordPrompt, "instruct": InstructPrompt}

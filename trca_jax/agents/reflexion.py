"""Reflexion: what an agent is asked after a failed trial, and how its answers enter the next one.

Source: Shinn et al. 2023; spec/methods.md section 9.4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MEMORY = 3  # reflections that are shown
_LONGEST = 600  # characters of one
_THOUGHT = re.compile(r"<think>.*?(</think>|$)|</?(action|think)>", re.DOTALL)


def remind(instruction: str, reflections: Sequence[str]) -> str:
    """The instruction with the latest reflections behind it, as prompts show it in another trial."""
    latest = [text for text in reflections if text][-MEMORY:]
    if not latest:
        return instruction
    lines = [f"{k}. {text}" for k, text in enumerate(latest, 1)]
    return "\n".join([instruction, "You have failed at this task before, and noted for yourself:", *lines])


def ask_reflection(
    role: str, instruction: str, turns: Sequence[tuple[str, str]], last: str, reflections: Sequence[str]
) -> str:
    """The question after a trial. instruction: without reminders. turns: (observation, answer) of its latest steps.
    last: the text that answered the last one. reflections: of earlier trials."""
    lines = [role, "You have tried a task and did not solve it. This is the end of what happened."]
    lines.append(f"Task: {remind(instruction, reflections)}")
    lines += [f"Observation: {seen}\n{answer}" for seen, answer in turns]
    lines += [
        f"Observation: {last}", "",
        "Do not go on with the task, which will begin anew. Say in two to four sentences what went wrong, and what you "
        "will do differently; name places, things and actions.",
    ]  # fmt: skip
    return "\n".join(lines)


def read_reflection(answer: str) -> str:
    """What was noted: the answer without thoughts and tags, in one line of at most 600 characters."""
    words = " ".join(_THOUGHT.sub(" ", answer).split())
    return words if len(words) <= _LONGEST else words[:_LONGEST].rsplit(" ", 1)[0] + " …"

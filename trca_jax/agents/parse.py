"""Reading an answer: the action inside its tags."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPEN, CLOSE = "<action>", "</action>"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Parsed:
    """action: the text between the first tags, lower case and stripped; None if the answer is malformed.
    start, stop: characters of the answer between the tags (0, 0 if malformed)."""

    action: str | None
    start: int = 0
    stop: int = 0


def parse(answer: str, *, opened: bool = False, think: bool = False) -> Parsed:
    """Reads `<action>...</action>`.

    opened: the prompt already ends with `<action>`, so the answer begins inside it. think: a `<think>...</think>` pair
    is required too. Malformed: a missing tag, an empty action, or Chinese characters. Source: methods 2.2.
    """
    start = 0 if opened else answer.find(OPEN) + len(OPEN)
    stop = answer.find(CLOSE, start)
    if stop < 0 or (not opened and start < len(OPEN)) or _CHINESE.search(answer):
        return Parsed(None)
    if think and not ("<think>" in answer and "</think>" in answer):
        return Parsed(None)
    # Bytes that are no text, which sampled answers may hold, could not be shown in the next prompt.
    action = answer[start:stop].encode(errors="replace").decode().strip().lower()
    return Parsed(action, start, stop) if action else Parsed(None)

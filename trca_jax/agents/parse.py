"""Reading an answer: the action inside its tags, or the block of a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

OPEN, CLOSE = "<action>", "</action>"
_THINK = re.compile(r"</?think>")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Parsed:
    """action: the text to execute; None if the answer is malformed. start, stop: its characters in the answer (0, 0 if
    malformed)."""

    action: str | None
    start: int = 0
    stop: int = 0


def parse(answer: str, *, opened: bool = False, think: bool = False) -> Parsed:
    """Reads the first `<action>...</action>`: what stands between the tags, in lower case and stripped.

    opened: the prompt already ends with `<action>`, so the answer begins inside it. think: a `<think>...</think>` pair
    is required too. Malformed: a missing tag, an empty action, or Chinese characters. Source: methods 2.2.
    """
    start = 0 if opened else answer.find(OPEN) + len(OPEN)
    stop = answer.find(CLOSE, start)
    if stop < 0 or (not opened and start < len(OPEN)) or _CHINESE.search(answer):
        return Parsed(None)
    if think and not ("<think>" in answer and "</think>" in answer):
        return Parsed(None)
    action = _as_text(answer[start:stop]).strip().lower()
    return Parsed(action, start, stop) if action else Parsed(None)


def parse_blocks(answer: str, kinds: Sequence[str]) -> Parsed:
    """Reads blocks such as `<search>...</search>`, which are actions with their tags, their letters' case kept.

    The action reaches from the first to the last tag of these kinds, opening or closing, in any case: one block, if the
    answer is well formed; all that a reader of blocks needs to know, if it is not. Text around it, an outer `<action>`
    too, does not count. Malformed: no block of any kind is closed.
    """
    tags = list(re.finditer(f"<(/?)({'|'.join(kinds)})>", answer, re.IGNORECASE))
    opened: set[str] = set()
    for tag in tags:
        kind = tag[2].lower()
        if tag[1] and kind in opened:
            start, stop = tags[0].start(), tags[-1].end()
            return Parsed(_as_text(answer[start:stop]), start, stop)
        if not tag[1]:
            opened.add(kind)
    return Parsed(None)


def thought(answer: str) -> str:
    """What an answer says before its action, without tags; "" for one that begins inside the action.

    >>> thought("<think>It may be in the fridge.</think> <action>go to fridge 1</action>")
    'It may be in the fridge.'
    """
    before, opened, _ = answer.partition(OPEN)
    return _THINK.sub("", before).strip() if opened or CLOSE not in answer else ""


def _as_text(sampled: str) -> str:
    """Without bytes that are no text, which sampled answers may hold and the next prompt could not show."""
    return sampled.encode(errors="replace").decode()

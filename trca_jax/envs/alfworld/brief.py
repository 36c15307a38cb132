"""ALFWorld's texts in few words."""

from __future__ import annotations

import re

_DROP = re.compile(r"-=.*?=-|[^\w\s]")
_TWICE = re.compile(r"\b(\w+ \d+) \1\b")
_EMPTY_WORDS = frozenset(
    "a an the you your and is it are of in on to at that arrive looking quickly around middle room next pick up"
    .split()
)  # fmt: skip


def brief(text: str) -> str:
    """The text in lower case without punctuation, banners, empty words and names said twice in a row. The task, which
    first observations end with, is left out: prompts show it by itself.

    >>> brief("You arrive at shelf 1. On the shelf 1, you see a mug 2, and a pen 1. Your task is to: find a mug.")
    'shelf 1 see mug 2 pen 1'
    """
    scene = text.split("Your task is to:")[0]
    words = (word for word in _DROP.sub(" ", scene.lower()).split() if word not in _EMPTY_WORDS)
    return _TWICE.sub(r"\1", " ".join(words))

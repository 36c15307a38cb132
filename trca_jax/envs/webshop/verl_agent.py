"""What verl-agent puts between WebShop and a policy: its observation, its list of actions, its reading of answers.

Source: spec/webshop.md section 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from trca_jax.envs.webshop.actions import SEPARATOR

FREE_SEARCH = "search[<your query>]"
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def observation(text: str, instruction: str) -> str:
    """A `text` page without what stands before and in the instruction, each part in single quotes; a page without the
    instruction, the last one, as it is."""
    parts = text.split(SEPARATOR)
    try:
        start = parts.index(instruction.strip()) + 1
    except ValueError:
        return text
    return SEPARATOR.join(f"'{part}'" for part in parts[start:])


def actions(page: str, menu: Iterable[str]) -> tuple[str, ...]:
    """The commands that are listed for a page of that kind: a free search on the search page, and a click on
    everything in the menu, 'click[search]' that does nothing among them."""
    clicks = tuple(f"click[{target}]" for target in menu)
    return (FREE_SEARCH, *clicks) if page == "search" else clicks


def project(response: str) -> tuple[str, bool]:
    """The action in a model's answer, in lower case, and whether the answer's form is valid.

    The action stands between the first action tags; without those it is the last 20 characters. A valid answer has
    them, both think tags as written here, and no Chinese character. Whether the action means anything is not asked.
    """
    lowered = response.lower()
    start, stop = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or stop < 0:
        return lowered[-20:], False
    action = lowered[start + len("<action>") : stop].strip()
    return action, "<think>" in response and "</think>" in response and not _CHINESE.search(response)

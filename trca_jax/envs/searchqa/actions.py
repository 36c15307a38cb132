"""The one search or answer that a response asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass

SEARCH, ANSWER, NOTHING = "search", "answer", ""
_OPEN = {kind: re.compile(f"<{kind}>", re.IGNORECASE) for kind in (SEARCH, ANSWER)}
_CLOSE = {kind: re.compile(f"</{kind}>", re.IGNORECASE) for kind in (SEARCH, ANSWER)}


@dataclass(frozen=True)
class Action:
    """kind: SEARCH, ANSWER or NOTHING. argument: the query or the answer, stripped. valid: one block of one kind."""

    kind: str
    argument: str
    valid: bool

    def __str__(self) -> str:
        """The projected action, which is all that is executed, in lower-case tags; empty for NOTHING."""
        return f"<{self.kind}>{self.argument}</{self.kind}>" if self.kind else ""


def project(response: str) -> Action:
    """The executable action of a response.

    Text after the first `</search>`, else after the first `</answer>`, is cut; then the first search block counts, else
    the first answer block. Tags are read in any case and wherever they stand. Invalid: neither block, an opening tag
    twice, or opening tags of both kinds, where the action is executed nevertheless. An empty query is valid.
    Source: spec/searchqa.md section 1.1.

    >>> str(project("<think>who?</think> <SEARCH> Ada Lovelace </SEARCH> and more"))
    '<search>Ada Lovelace</search>'
    """
    opened = sum(len(tag.findall(response)) for tag in _OPEN.values())
    end = next((end for tag in _CLOSE.values() if (end := tag.search(response))), None)
    cut = response[: end.end()] if end else ""
    for kind in (SEARCH, ANSWER):
        start = _OPEN[kind].search(cut)
        stop = start and _CLOSE[kind].search(cut, start.end())
        if stop:
            return Action(kind, cut[start.end() : stop.start()].strip(), valid=opened == 1)
    return Action(NOTHING, "", valid=False)

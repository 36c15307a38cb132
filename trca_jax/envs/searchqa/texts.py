"""What an agent is shown of the passages found, in either protocol, and how that is read again.

Source: spec/searchqa.md section 1.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from trca_jax.envs.searchqa.retrieval import Passage

VERL_AGENT, SEARCH_R1 = "verl-agent", "search-r1"
PROTOCOLS = (VERL_AGENT, SEARCH_R1)
_LONGEST = {VERL_AGENT: 250, SEARCH_R1: 120}  # words of a passage; Search-R1 shows 500 tokens of three
_NOTHING = "No search results found."
_OPEN, _CLOSE = "<information>", "</information>"
_VERL_AGENT = re.compile(r"^Doc \d+: \"(.*)\"$", re.MULTILINE)
_SEARCH_R1 = re.compile(r"^Doc \d+\(Title: \"(.*?)\"\) ", re.MULTILINE)
RETRY = (
    "That was no valid action. Put a query between <search> and </search> to search, or the final answer between "
    "<answer> and </answer>, and try again."
)


class Document(NamedTuple):
    """A passage as an agent sees it."""

    title: str
    text: str


def shown(passage: Passage, protocol: str) -> Document:
    """What is shown of a passage: blanks made one, and not more words than the protocol has room for."""
    return Document(" ".join(passage.title.split()), " ".join(passage.text.split()[: _LONGEST[protocol]]))


def information(passages: Sequence[Passage], protocol: str) -> str:
    """The passages in their order; long ones are cut one by one, so that none crowds out another or a tag.

    verl-agent: `<information>{"result": "Doc 1: \\"title\\"\\ntext\\n…"}</information>`, everything but ASCII escaped.
    Search-R1: `<information>Doc 1(Title: "title") text⏎…</information>`.
    """
    documents = [shown(passage, protocol) for passage in passages]
    if protocol == SEARCH_R1:
        found = "\n".join(f'Doc {n}(Title: "{title}") {text}' for n, (title, text) in enumerate(documents, 1))
    else:
        found = "\n".join(f'Doc {n}: "{title}"\n{text}' for n, (title, text) in enumerate(documents, 1))
        found = json.dumps({"result": found or _NOTHING})
    return f"{_OPEN}{found}{_CLOSE}"


def read_information(observation: str) -> tuple[Document, ...] | None:
    """The documents of an observation, in either protocol; None if it is no list of results.

    >>> read_information('<information>Doc 1(Title: "Tarn") A river.</information>')
    (Document(title='Tarn', text='A river.'),)
    """
    if not (observation.startswith(_OPEN) and observation.endswith(_CLOSE)):
        return None
    found = observation[len(_OPEN) : -len(_CLOSE)]
    pattern = _SEARCH_R1
    if found.startswith("{"):
        try:
            found = json.loads(found)["result"]
        except (ValueError, KeyError, RecursionError):
            return None
        if not isinstance(found, str):
            return None
        pattern = _VERL_AGENT
    starts = list(pattern.finditer(found))
    if found in ("", _NOTHING) or not starts:
        return () if found in ("", _NOTHING) else None
    ends = [match.start() for match in starts[1:]] + [len(found)]
    return tuple(Document(m[1], found[m.end() : end].strip()) for m, end in zip(starts, ends, strict=True))

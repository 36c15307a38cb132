"""Searches and answers made of words that an agent has seen, for policies that choose among commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trca_jax.envs.searchqa.actions import ANSWER, SEARCH
from trca_jax.envs.searchqa.entities import entities
from trca_jax.envs.searchqa.names import Names, bare, key, names_in
from trca_jax.envs.searchqa.texts import Document

_MOST_SEARCHES, _MOST_ANSWERS = 12, 48
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_TAGS = str.maketrans("<>", "  ")
_YES_NO = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|can)\b", re.IGNORECASE)


def command(kind: str, argument: str) -> str:
    """The text of an action; blanks around the argument make its words tokens of their own.

    >>> command("search", "Ada Moss")
    '<search> Ada Moss </search>'
    """
    return f"<{kind}> {' '.join(argument.translate(_TAGS).split())} </{kind}>"


def offered(
    question: str, seen: Sequence[Sequence[Document]], names: Names, *, searches: bool = True
) -> tuple[str, ...]:
    """Commands for a question after some searches: searches for the things it names and, after results, for names in
    them; answers from titles, names and years in the results, the latest first. Nothing is drawn from labels.

    seen: the documents of each search so far. searches: whether a search would be carried out now.
    """
    asked = entities(question, names)
    found = _distinct(name for documents in reversed(seen) for name in _candidates(documents))
    queries = _distinct((*asked, question.rstrip("? "), *(name for name in found if not name.isdigit())))
    answers = [*found, *(("yes", "no") if _YES_NO.match(question) else ())]
    chosen = [command(SEARCH, query) for query in queries[:_MOST_SEARCHES]] if searches else []
    chosen += [command(ANSWER, answer) for answer in (answers or asked)[:_MOST_ANSWERS]]
    return tuple(chosen) or (command(ANSWER, question.rstrip("? ")),)


def _candidates(documents: Sequence[Document]) -> Iterable[str]:
    for document in documents:
        yield bare(document.title)
        yield from names_in(document.text)
        yield from _YEAR.findall(document.text)


def _distinct(names: Iterable[str]) -> list[str]:
    found: dict[str, str] = {}
    for name in names:
        if short := key(name):
            found.setdefault(short, name)
    return list(found.values())

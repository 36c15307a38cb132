"""The passages that are searched. Source: spec/searchqa.md section 3 (the rows of wiki-18) and section 7."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trca_jax.envs.searchqa.jsonl import read_jsonl
from trca_jax.envs.searchqa.retrieval import Passage


def split_contents(contents: str) -> tuple[str, str]:
    """Title and text of `"title"⏎text`; the quotes may be missing. One line alone is text without a title.

    >>> split_contents('"Ada Lovelace"\\nShe wrote programs.')
    ('Ada Lovelace', 'She wrote programs.')
    """
    title, newline, text = contents.lstrip().partition("\n")
    if not newline:
        return "", title.rstrip()
    title = title.strip()
    if len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return title.strip(), text.strip()


def passage(row: Mapping[str, Any], score: float = 0.0) -> Passage:
    """The passage of a corpus row: `id` with `contents`, or with `text` and, if it has one, `title`.

    Raises ValueError saying what the row lacks.
    """
    identity, contents, text = row.get("id"), row.get("contents"), row.get("text")
    if not isinstance(identity, str | int) or isinstance(identity, bool) or identity == "":
        raise ValueError(f"id is {identity!r}; expected a text or a number")
    if isinstance(contents, str) and contents.strip():
        title, text = split_contents(contents)
    elif isinstance(text, str) and text.strip():
        title = row.get("title") or ""
        if not isinstance(title, str):
            raise ValueError(f"title of row {identity!r} is {str(title)[:60]!r}; expected a text")
        title, text = title.strip(), text.strip()
    else:
        raise ValueError(
            f"row {identity!r} has no contents and no text; expected one of them, a text that is not empty"
        )
    return Passage(str(identity), title, text, score)


def read_corpus(path: str | Path) -> tuple[Passage, ...]:
    """The passages of a JSON Lines file in its order, each with score 0.

    Raises ValueError naming the file and the line: a row without id or contents, an id met before; or an empty file.
    """
    path, passages, lines = Path(path), [], {}
    for where, row in read_jsonl(path):
        try:
            passages.append(passage(row))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        before = lines.setdefault(passages[-1].id, where)
        if before is not where:
            raise ValueError(f"{where}: id {passages[-1].id!r} was met before ({before}); expected distinct ids")
    if not passages:
        raise ValueError(f"{path} holds no passage; expected one JSON object a line with id and contents")
    return tuple(passages)

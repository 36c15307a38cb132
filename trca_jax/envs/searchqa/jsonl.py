"""Rows of JSON Lines files, each with where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_jsonl(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, row) for every line that is not blank; where: the file and the line, for messages.

    Raises ValueError naming the file, or the line that is no JSON object.
    """
    for where, line in read_lines(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where}: no JSON ({error}); expected one object a line") from None
        if not isinstance(row, dict):
            raise ValueError(f"{where}: {line.strip()[:60]!r} is no JSON object; expected one object a line")
        yield where, row


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """(where, line) for every line that is not blank. Raises ValueError if the file cannot be read as UTF-8 text."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                where = f"{path}, line {number}"
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise ValueError(f"{where}: no UTF-8 text ({error})") from None
                if text.strip():
                    yield where, text
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None

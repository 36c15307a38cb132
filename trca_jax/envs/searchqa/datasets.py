"""Questions from files: FlashRAG's, Search-R1's, verl-agent's, and the sets' own.

Source: spec/searchqa.md sections 1.2 and 3.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trca_jax.envs.searchqa.jsonl import read_jsonl
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.rows import question

SETS = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle")
TRAIN_SETS = ("nq", "hotpotqa")
EVAL = "eval"
_EVAL_SPLITS = ("test", "dev")


def read_questions(source: str | Path, sets: Sequence[str], split: str) -> tuple[Question, ...]:
    """The questions of one or several sets, set by set in the order given, each in the order of its file.

    source: one file; or a folder that holds `<set>/<split>.<ending>` or, for rows that name their set in `data_source`,
    `<split>.<ending>`. Endings and what the rows may be: jsonl and json (FlashRAG, NQ-open, HotpotQA, 2Wiki, MuSiQue),
    parquet (Search-R1, verl-agent; needs pyarrow), tsv (PopQA), csv (Bamboogle).
    split: "train", "dev", "test", or "eval": test, and dev for a set without test. A file takes no notice of it.
    Raises ValueError naming the file and the row: an empty question, no gold answer, an id met before in its set, a
    malformed row; or naming the set that is not there.
    """
    source, wanted = Path(source).expanduser(), tuple(dict.fromkeys(sets))
    if not wanted:
        raise ValueError(f"no set is asked for; expected some of {', '.join(SETS)}")
    if source.is_file():
        found = read_file(source, wanted[0] if len(wanted) == 1 else None)
        return tuple(q for name in wanted for q in _of_set(found, name, source))
    if not source.is_dir():
        raise ValueError(f"no questions at {str(source)!r}: no such file or folder")
    mixed: dict[Path, tuple[Question, ...]] = {}
    questions: list[Question] = []
    for name in wanted:
        path = _find(source / name, split)
        if path:
            questions += _of_set(read_file(path, name), name, path)
            continue
        path = _find(source, split)
        if not path:
            here = ", ".join(sorted(str(p.relative_to(source)) for p in source.glob("*/*.*") if p.suffix in _ENDINGS))
            raise ValueError(
                f"{source} holds no {name}/{split}.jsonl (nor another ending); it holds {here or 'no set'}"
            )
        if path not in mixed:
            mixed[path] = read_file(path, None)
        questions += _of_set(mixed[path], name, path)
    return tuple(questions)


def read_file(path: Path, source: str | None) -> tuple[Question, ...]:
    """All questions of one file. source: the set of rows that do not name theirs. Raises as `read_questions` does."""
    if path.suffix not in _ENDINGS:
        raise ValueError(f"{path} ends in {path.suffix!r}; expected one of {', '.join(_ENDINGS)}")
    questions, met = [], {}
    for number, (where, row) in enumerate(_ENDINGS[path.suffix](path)):
        try:
            questions.append(question(row, source, f"{path.stem}_{number}"))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        before = met.setdefault(questions[-1].id, where)
        if before is not where:
            raise ValueError(f"{where}: id {questions[-1].id!r} was met before ({before}); expected distinct ids")
    if not questions:
        raise ValueError(f"{path} holds no question")
    return tuple(questions)


def _of_set(questions: Sequence[Question], name: str, path: Path) -> list[Question]:
    found = [q for q in questions if q.source == name]
    if not found:
        there = ", ".join(sorted({q.source for q in questions}))
        raise ValueError(f"{path} holds no question of {name!r}; its rows are of {there}")
    return found


def _find(folder: Path, split: str) -> Path | None:
    splits = _EVAL_SPLITS if split == EVAL else (split,)
    paths = (folder / f"{name}{ending}" for name in splits for ending in _ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(rows, list):
        raise ValueError(f"{path} is no list of rows")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ValueError(f"{path}, row {number}: {str(row)[:60]!r} is no JSON object")
        yield f"{path}, row {number}", row


def _table_rows(delimiter: str) -> Callable[[Path], Iterator[tuple[str, dict[str, Any]]]]:
    def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                table = csv.DictReader(file, delimiter=delimiter, strict=True)
                for row in table:
                    where = f"{path}, line {table.line_num}"
                    if None in row or None in row.values():
                        raise ValueError(f"{where}: expected {len(table.fieldnames)} columns, as in the first line")
                    yield where, {name.lower(): value for name, value in row.items()}
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path} cannot be read as a table: {error}") from None

    return rows


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ValueError(f"reading {path} needs pyarrow, which is not installed: pip install pyarrow") from None
    try:
        number = 0
        for batch in ParquetFile(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield f"{path}, row {number}", row
    except (OSError, ArrowException) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from None


_ENDINGS = {
    ".jsonl": read_jsonl,
    ".json": _json_rows,
    ".parquet": _parquet_rows,
    ".tsv": _table_rows("\t"),
    ".csv": _table_rows(","),
}

"""Read one benchmark's rubric library from its TOML file, check it, and give it a fingerprint."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trca_jax.rubrics.grammar import check
from trca_jax.rubrics.schema import BindingField, Fact, Library, Operator

_TOP = {"benchmark", "operator", "context"}
_OPERATOR = {"name", "category", "when", "doc"}


def read_library(
    path: str | Path, facts: Sequence[Fact], fields: Sequence[BindingField], contexts: Sequence[str]
) -> Library:
    """The library that a rubric.toml holds; facts, binding fields and context fields are those the benchmark declares.

    Raises ValueError that names the file, the operator and what is wrong.
    """
    try:
        return parse_library(Path(path).read_text(encoding="utf-8"), facts, fields, contexts)
    except (OSError, ValueError) as error:
        raise ValueError(f"rubric library {path}: {error}") from None


def parse_library(text: str, facts: Sequence[Fact], fields: Sequence[BindingField], contexts: Sequence[str]) -> Library:
    """As `read_library`, from the file's text."""
    content = tomllib.loads(text)
    _keys(content, _TOP, set(), "the file")
    operators = content["operator"]
    if not isinstance(operators, list) or not operators:
        raise ValueError("no operator; write at least one [[operator]] table")
    context = content["context"]
    _keys(context, {"fields"}, set(), "[context]")
    names = context["fields"]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"[context] fields = {names!r}: expected a list of names")
    if unknown := sorted(set(names) - set(contexts)):
        raise ValueError(f"[context] fields: {unknown[0]!r} is unknown, expected some of {', '.join(contexts)}")
    parts = {
        "benchmark": _text(content["benchmark"], "benchmark"),
        "facts": tuple(facts),
        "fields": tuple(fields),
        "operators": tuple(_operator(table, index) for index, table in enumerate(operators, 1)),
        "context": tuple(names),
    }
    library = Library(**parts, fingerprint=fingerprint(**parts))
    check(library)
    return library


def select(library: Library, contexts: Sequence[str], context: Sequence[str], without: Sequence[str]) -> Library:
    """The library with other context fields (none: its own) and without some operators; for ablations.

    contexts: the fields on offer. What remains of a category shares its whole budget. Raises ValueError for a name that
    there is not, and if no operator would remain.
    """
    known = [operator.name for operator in library.operators]
    for names, offered, what in ((context, contexts, "context field"), (without, known, "operator")):
        if unknown := sorted(set(names) - set(offered)):
            raise ValueError(f"{what} {unknown[0]!r} of {library.benchmark} is unknown, expected {', '.join(offered)}")
    parts = {
        "benchmark": library.benchmark,
        "facts": library.facts,
        "fields": library.fields,
        "operators": tuple(operator for operator in library.operators if operator.name not in without),
        "context": tuple(context) or library.context,
    }
    if not parts["operators"]:
        raise ValueError(f"all operators of {library.benchmark} are left out; keep at least one")
    return Library(**parts, fingerprint=fingerprint(**parts))


def fingerprint(**parts: Any) -> str:
    """sha256 (hex) of a library's content in canonical form: sorted keys, conditions with blanks made single."""
    canonical = json.dumps(parts, default=asdict, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _operator(table: Any, index: int) -> Operator:
    where = f"operator {index}"
    _keys(table, _OPERATOR, {"each"}, where)
    where = f"operator {table['name']!r}"
    values = {key: _text(value, f"{where}: {key}") for key, value in table.items()}
    return Operator(**values)


def _keys(table: Any, needed: set[str], optional: set[str], where: str) -> None:
    if not isinstance(table, Mapping):
        raise ValueError(f"{where} is {table!r}, expected a table")
    if missing := sorted(needed - set(table)):
        raise ValueError(f"{where} lacks {missing}")
    if unknown := sorted(set(table) - needed - optional):
        raise ValueError(f"{where} has unknown keys {unknown}; it may hold {sorted(needed | optional)}")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where} is {value!r}, expected a text")
    return " ".join(value.split())

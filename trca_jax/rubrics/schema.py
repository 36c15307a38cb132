"""The vocabulary of rubrics: facts, binding fields, operators, libraries, and how their values become arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

KINDS = ("flag", "symbol", "symbols", "number")
CATEGORIES = ("evidence", "invalidity", "execution")  # the order of the category index in CreditBatch

_FLAG = {None: -1, False: 0, True: 1}
_EMPTY = {
    "flag": (np.int8, -1),
    "symbol": (np.int32, 0),
    "symbols": (np.int32, 0),
    "number": (np.float32, np.nan),
}


@dataclass(frozen=True)
class Fact:
    """One thing that an adapter may know about a transition; None always means unknown.

    kind: 'flag' (bool), 'symbol' (str), 'number' (int or float) or 'symbols' (a tuple of distinct str: exactly these
    and no other, `()` being the set known to be empty; ending in `...`: these and perhaps more).
    width: how many members a 'symbols' value can hold; a longer one keeps the first `width` and counts as "perhaps
    more". Raises ValueError for an unknown kind or a width that does not go with it.
    """

    name: str
    kind: str
    doc: str
    width: int = 0

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or self.name == "count":
            raise ValueError(f"fact name {self.name!r}: expected an identifier other than 'count'")
        if self.kind not in KINDS:
            raise ValueError(f"fact {self.name!r}: kind {self.kind!r} is not one of {', '.join(KINDS)}")
        if (self.width > 0) != (self.kind == "symbols"):
            raise ValueError(f"fact {self.name!r}: width {self.width} with kind {self.kind!r}; 'symbols' alone has one")


@dataclass(frozen=True)
class BindingField(Fact):
    """One thing that the task itself says; as `Fact`, but with one value a rollout instead of one a transition."""


@dataclass(frozen=True)
class Operator:
    """One rubric operator. category: one of `CATEGORIES`. when: its condition (`rubrics.grammar`).

    each: None, or a 'symbols' field; then there is one item per bound member, and inside `when` the field's name
    means that member.
    """

    name: str
    category: str
    when: str
    doc: str
    each: str | None = None


@dataclass(frozen=True)
class Library:
    """All that is judged on one benchmark. context: names of the fields of `Adapter.context()`
    that a decision context is made of.

    fingerprint: sha256 (hex) of the canonical content, equal for equal meaning (comments and layout do not count).
    """

    benchmark: str
    facts: tuple[Fact, ...]
    fields: tuple[BindingField, ...]
    operators: tuple[Operator, ...]
    context: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True)
class Declaration:
    """The names that a benchmark offers to a library, whoever writes it; nothing hidden is among them.

    contexts: the fields of `Adapter.context()`. actions: templates of the commands; what stands in braces is any text:
    'take {object} from {receptacle}'.
    """

    facts: tuple[Fact, ...]
    fields: tuple[BindingField, ...]
    contexts: tuple[str, ...]
    actions: tuple[str, ...]

    def template(self, action: str | None) -> str:
        """The first template that a command fits; 'no action' or 'no command' where there is none."""
        if action is None:
            return "no action"
        fits = (template for template in self.actions if _pattern(template).fullmatch(action.strip()))
        return next(fits, "no command")


@lru_cache
def _pattern(template: str) -> re.Pattern[str]:
    literal = re.split(r"\{[^}]*\}", template)
    return re.compile("(.+)".join(map(re.escape, literal)), re.DOTALL)


class SymbolTable(dict):
    """Strings to dense ids of one batch: 0 is None (unknown), `literals` come first, `table[text]` gives new ids."""

    def __init__(self, literals: Iterable[str] = ()) -> None:
        super().__init__({None: 0})
        for text in literals:
            self[text]

    def __missing__(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not a string")
        return self.setdefault(text, len(self))


def encode_facts(
    rows: Sequence[Sequence[Mapping[str, Any]]], library: Library, symbols: SymbolTable, T: int
) -> dict[str, np.ndarray]:
    """The facts of R episodes, an array each: flag int8, symbol int32, number float32 [R,T], symbols int32 [R,T,1+K].

    Unknown is −1, 0, NaN. A set holds 1 in slot 0 if its members are all there are, then member ids, then 0; so an
    unknown set is all 0 and a set known to be empty is 1, 0, 0, ... A missing key and every step after an episode's
    end are unknown. rows: one list per rollout of `Adapter.transition` results, at most T long.
    Raises ValueError for undeclared facts, values of the wrong kind and episodes longer than T.
    """
    lengths = np.array([len(steps) for steps in rows], np.int64)
    if lengths.size and lengths.max() > T:
        raise ValueError(f"episode {lengths.argmax()} has {lengths.max()} transitions, the arrays hold T={T}; raise T")
    flat = list(chain.from_iterable(rows))
    real = np.arange(T) < lengths[:, None]
    encoded = _encode(flat, library.facts, symbols, f"the facts of {library.benchmark!r}")
    arrays = {}
    for fact in library.facts:
        values = encoded[fact.name]
        dtype, unknown = _EMPTY[fact.kind]
        arrays[fact.name] = np.full((len(rows), T, *values.shape[1:]), unknown, dtype)
        arrays[fact.name][real] = values
    return arrays


def encode_bindings(rows: Sequence[Mapping[str, Any]], library: Library, symbols: SymbolTable) -> dict[str, np.ndarray]:
    """The bindings of R rollouts as arrays [R] (sets [R,1+K]), coded as in `encode_facts`. Raises as that does."""
    return _encode(rows, library.fields, symbols, f"the binding of {library.benchmark!r}")


def _encode(
    rows: Sequence[Mapping[str, Any]], declared: Sequence[Fact], symbols: SymbolTable, what: str
) -> dict[str, np.ndarray]:
    if rows and (extra := set(rows[0]) - {entry.name for entry in declared}):
        raise ValueError(f"{what}: {sorted(extra)} not declared; declare them or drop them")
    arrays = {}
    for entry in declared:
        name = entry.name
        try:
            arrays[name] = _column([row.get(name) for row in rows], entry, symbols)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{what}: {name!r} is a {entry.kind}, but a value does not fit: {error}") from None
    return arrays


def _column(values: list[Any], entry: Fact, symbols: SymbolTable) -> np.ndarray:
    dtype, unknown = _EMPTY[entry.kind]
    if entry.kind == "flag":
        return np.array([_FLAG[value] for value in values], dtype)
    if entry.kind == "symbol":
        return np.array([symbols[value] for value in values], dtype)
    if entry.kind == "number":
        return np.array([unknown if value is None else value for value in values], dtype)
    index = {value: i for i, value in enumerate(dict.fromkeys(values))}  # a few sets recur in most transitions
    table = np.zeros((len(index), 1 + entry.width), dtype)
    for value, i in index.items():
        if value is not None:
            _fill_set(table[i], value, symbols)
    return table[[index[value] for value in values]]


def _fill_set(slots: np.ndarray, value: tuple, symbols: SymbolTable) -> None:
    if not isinstance(value, tuple):
        raise TypeError(f"{value!r} is not a tuple")
    members = [symbols[member] for member in dict.fromkeys(value) if member is not ...]
    if 0 in members:
        raise TypeError(f"{value!r} has a member None; end the tuple in ... to say that there may be more")
    width = len(slots) - 1
    slots[1 : 1 + len(members)] = members[:width]
    slots[0] = ... not in value and len(members) <= width

"""From a rubric library to one jitted array function in Kleene's three-valued logic: unknown never gives credit."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from trca_jax.rubrics.grammar import check, literals_in, names_in, parse, scope
from trca_jax.rubrics.schema import CATEGORIES, Library, SymbolTable


class Truth(NamedTuple):
    """A three-valued flag: where it is certainly true, and where certainly false."""

    true: Array
    false: Array


class Range(NamedTuple):
    """A number known to lie between two bounds, both included."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Item:
    """One judged item: an operator, or one member of the set that its `each` names. slot: of that member, or None."""

    name: str
    category: int
    tree: ast.expr = field(repr=False)
    each: str | None
    slot: int | None


class Judge:
    """A compiled library.

    `judge(facts, bindings)` gives (judgement bool [R,T,J], bound bool [R,J]) from the arrays of `encode_facts` and
    `encode_bindings`; item j fires at (r,t) only where its condition is certainly true. It is bound for rollout r if
    every binding field that its condition names is known (and, for a set, known to have a member); an unbound item
    never fires. symbols(): a table for `encode_facts` and `encode_bindings`, fresh for every batch.
    library: as it was given. items: names [J]. category: index into `CATEGORIES`, int32 [J]. Raises ValueError if the
    library is not sound.
    """

    def __init__(self, library: Library) -> None:
        check(library)
        self.library = library
        items = _items(library)
        kinds = {entry.name: entry.kind for entry in (*library.facts, *library.fields)}
        fields = frozenset(entry.name for entry in library.fields)
        self._literals = sorted(set().union(*(literals_in(item.tree) for item in items)))
        literals = self.symbols()
        self.items = tuple(item.name for item in items)
        self.category = np.array([item.category for item in items], np.int32)
        self._judge = jax.jit(lambda facts, bindings: _judge(items, kinds, fields, literals, facts, bindings))

    def symbols(self) -> SymbolTable:
        return SymbolTable(self._literals)

    def __call__(
        self, facts: Mapping[str, Array], bindings: Mapping[str, Array]
    ) -> tuple[Bool[Array, "R T J"], Bool[Array, "R J"]]:
        return self._judge(facts, bindings)


def _items(library: Library) -> list[Item]:
    width = {entry.name: entry.width for entry in library.fields}
    items = []
    for operator in library.operators:
        tree = parse(operator.when, scope(library, operator))
        category = CATEGORIES.index(operator.category)
        if operator.each is None:
            items.append(Item(operator.name, category, tree, None, None))
        else:
            slots = range(width[operator.each])
            items += [Item(f"{operator.name}[{i}]", category, tree, operator.each, 1 + i) for i in slots]
    return items


def _judge(items, kinds, fields, literals, facts, bindings):
    """The traced body; facts broadcast as [R,T], bindings as [R,1]."""
    values = {name: _read(kinds[name], jnp.asarray(array)) for name, array in facts.items()}
    values |= {name: _read(kinds[name], jnp.asarray(array)[:, None]) for name, array in bindings.items()}
    known = {name: _known(kinds[name], jnp.asarray(array)) for name, array in bindings.items()}
    shape = next(iter(facts.values())).shape[:2]
    fired, bound = [], []
    for item in items:
        names, here = names_in(item.tree), values
        here_known = known
        if item.each is not None:
            member = jnp.asarray(bindings[item.each])[:, item.slot]
            here = values | {item.each: member[:, None]}
            here_known = known | {item.each: member > 0}
        everything = [here_known[name] for name in sorted(names & fields)]
        bound.append(reduce(jnp.logical_and, everything, jnp.ones(shape[0], bool)))
        fired.append(jnp.broadcast_to(_evaluate(item.tree, here, literals).true, shape))
    bound = jnp.stack(bound, axis=-1)
    return jnp.stack(fired, axis=-1) & bound[:, None, :], bound


def _read(kind: str, array: Array) -> Truth | Range | Array:
    if kind == "flag":
        return Truth(array == 1, array == 0)
    if kind == "number":
        return Range(jnp.where(jnp.isnan(array), -jnp.inf, array), jnp.where(jnp.isnan(array), jnp.inf, array))
    return array  # a symbol's id, 0 unknown; or a set: slot 0 says "no others", then ids


def _known(kind: str, array: Array) -> Array:
    if kind == "flag":
        return array >= 0
    if kind == "number":
        return ~jnp.isnan(array)
    return array > 0 if kind == "symbol" else (array[..., 1:] > 0).any(-1)


def _evaluate(node: ast.expr, values: Mapping[str, Truth | Range | Array], literals: SymbolTable):
    """Truth, Range, ids or set of a checked expression."""
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=str(text)):
            return jnp.int32(literals[text])
        case ast.Constant(value=number):
            return Range(jnp.float32(number), jnp.float32(number))
        case ast.BoolOp(op=op, values=parts):
            terms = [_evaluate(part, values, literals) for part in parts]
            return reduce(_and if isinstance(op, ast.And) else _or, terms)
        case ast.UnaryOp(operand=operand):
            return _not(_evaluate(operand, values, literals))
        case ast.BinOp(left=left, right=right):
            return _intersect(_evaluate(left, values, literals), _evaluate(right, values, literals))
        case ast.Call(args=[argument]):
            return _count(_evaluate(argument, values, literals))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(op, _evaluate(left, values, literals), _evaluate(right, values, literals))
    raise AssertionError(ast.dump(node))  # `check` lets nothing else through


def _and(a: Truth, b: Truth) -> Truth:
    return Truth(a.true & b.true, a.false | b.false)


def _or(a: Truth, b: Truth) -> Truth:
    return Truth(a.true | b.true, a.false & b.false)


def _not(a: Truth) -> Truth:
    return Truth(a.false, a.true)


def _compare(op: ast.cmpop, a: Range | Array, b: Range | Array) -> Truth:
    match op:
        case ast.NotEq() | ast.NotIn():
            return _not(_compare(ast.Eq() if isinstance(op, ast.NotEq) else ast.In(), a, b))
        case ast.In():
            return _contains(b, a)
        case ast.Eq() if isinstance(a, Range):
            return Truth((a.low >= b.high) & (a.high <= b.low), (a.high < b.low) | (b.high < a.low))
        case ast.Eq():
            known = (a > 0) & (b > 0)
            return Truth(known & (a == b), known & (a != b))
        case ast.Lt():
            return Truth(a.high < b.low, a.low >= b.high)
        case ast.LtE():
            return Truth(a.high <= b.low, a.low > b.high)
        case ast.Gt():
            return _compare(ast.Lt(), b, a)
    return _compare(ast.LtE(), b, a)


def _contains(members: Array, symbol: Array) -> Truth:
    slots = members[..., 1:]
    found = ((slots == symbol[..., None]) & (slots > 0)).any(-1)
    complete = members[..., 0] > 0
    certainly_not = complete & ((~found & (symbol > 0)) | ~(slots > 0).any(-1))
    return Truth(found, certainly_not)


def _intersect(a: Array, b: Array) -> Array:
    slots, others = a[..., 1:], b[..., 1:]
    common = jnp.where((slots[..., :, None] == others[..., None, :]).any(-1), slots, 0)
    complete = ((a[..., 0] > 0) & (b[..., 0] > 0)) | _empty(a) | _empty(b)
    return jnp.concatenate([complete[..., None].astype(a.dtype), common], -1)


def _empty(members: Array) -> Array:
    return (members[..., 0] > 0) & ~(members[..., 1:] > 0).any(-1)


def _count(members: Array) -> Range:
    low = (members[..., 1:] > 0).sum(-1).astype(jnp.float32)
    return Range(low, jnp.where(members[..., 0] > 0, low, jnp.inf))

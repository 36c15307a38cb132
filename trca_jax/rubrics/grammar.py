"""The condition language of rubrics: Python expression syntax, parsed with `ast`, checked, never executed.

condition  = condition (and | or) condition | not condition | flag
           | number (== != < <= > >=) number | symbol (== !=) symbol | symbol (in | not in) symbols
number     = integer literal | name | count(symbols)
symbol     = string literal | name
symbols    = name | symbols & symbols                    names are declared facts and binding fields
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from trca_jax.rubrics.schema import CATEGORIES, Fact, Library, Operator

_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def parse(when: str, kinds: Mapping[str, str]) -> ast.expr:
    """The checked syntax tree of a condition. kinds: the kind of every name it may use. Raises ValueError."""
    try:
        tree = ast.parse(when.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a condition ({error.args[0] if error.args else error})") from None
    if (kind := kind_of(tree, kinds)) != "flag":
        raise ValueError(f"{ast.unparse(tree)} is a {kind}, the whole condition must be true or false")
    return tree


def scope(library: Library, operator: Operator) -> dict[str, str]:
    """The kinds of all names that an operator's condition may use; the field of `each` stands for one member."""
    kinds = {entry.name: entry.kind for entry in library.facts + library.fields}
    return kinds if operator.each is None else kinds | {operator.each: "symbol"}


def check(library: Library) -> None:
    """Raises ValueError that names the first operator with a wrong category, name, `each` or condition."""
    names = [entry.name for entry in (*library.facts, *library.fields)]
    _no_twins(names, "facts and binding fields")
    _no_twins([operator.name for operator in library.operators], "operators")
    fields: dict[str, Fact] = {field.name: field for field in library.fields}
    for operator in library.operators:
        where = f"operator {operator.name!r}: "
        if operator.category not in CATEGORIES:
            raise ValueError(f"{where}category {operator.category!r} is not one of {', '.join(CATEGORIES)}")
        if operator.each is not None and (operator.each not in fields or fields[operator.each].kind != "symbols"):
            sets = [field.name for field in library.fields if field.kind == "symbols"]
            raise ValueError(f"{where}each = {operator.each!r} is not a set-valued binding field; those are {sets}")
        try:
            tree = parse(operator.when, scope(library, operator))
        except ValueError as error:
            raise ValueError(f"{where}when: {error}") from None
        if operator.each is not None and operator.each not in names_in(tree):
            raise ValueError(f"{where}each = {operator.each!r} is not used in its condition")


def names_in(tree: ast.expr) -> set[str]:
    """All facts and fields that a checked condition reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"count"}


def literals_in(tree: ast.expr) -> set[str]:
    """All string literals of a checked condition."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def kind_of(node: ast.expr, kinds: Mapping[str, str]) -> str:
    """The kind of an expression; raises ValueError if it is outside the language or its parts do not go together."""
    match node:
        case ast.Name(id=name):
            if name not in kinds:
                raise ValueError(f"unknown name {name!r}; the facts and fields are {', '.join(sorted(kinds))}")
            return kinds[name]
        case ast.Constant(value=str()):
            return "symbol"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            if value >= 2**24:
                raise ValueError(f"{value} is too large; integers are exact below {2**24}")
            return "number"
        case ast.BoolOp(values=values):
            for value in values:
                _expect(value, "flag", kinds)
            return "flag"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _expect(operand, "flag", kinds)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            _expect(left, "symbols", kinds)
            return _expect(right, "symbols", kinds)
        case ast.Call(func=ast.Name(id="count"), args=[argument], keywords=[]):
            _expect(argument, "symbols", kinds)
            return "number"
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compare(left, op, right, kinds)
        case ast.Compare():
            raise ValueError(f"{ast.unparse(node)} is chained; write two comparisons joined by 'and'")
    raise ValueError(f"{ast.unparse(node)} is not part of the language (see trca_jax/rubrics/grammar.py)")


def _compare(left: ast.expr, op: ast.cmpop, right: ast.expr, kinds: Mapping[str, str]) -> str:
    if isinstance(op, ast.In | ast.NotIn):
        _expect(left, "symbol", kinds)
        _expect(right, "symbols", kinds)
    elif isinstance(op, _ORDER):
        _expect(left, "number", kinds)
        _expect(right, "number", kinds)
    elif isinstance(op, ast.Eq | ast.NotEq):
        if (kind := kind_of(left, kinds)) not in ("symbol", "number"):
            raise ValueError(f"{ast.unparse(left)} is a {kind}; == and != compare two symbols or two numbers")
        _expect(right, kind, kinds)
    else:
        raise ValueError("'is' is not part of the language; use ==")
    return "flag"


def _expect(node: ast.expr, kind: str, kinds: Mapping[str, str]) -> str:
    if (found := kind_of(node, kinds)) != kind:
        raise ValueError(f"{ast.unparse(node)} is a {found}, a {kind} is needed here")
    return kind


def _no_twins(names: list[str], what: str) -> None:
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{what} with the same name: {twins}")

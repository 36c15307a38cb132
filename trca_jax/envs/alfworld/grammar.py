"""Reads the text grammar that comes inside an ALFWorld game and writes commands and feedback with it.

TextWorld's parser reads the grammar; only the derivation is done here, because TextWorld's own copies every context and
parses every command anew at each step (40 ms). Texts are equal to TextWorld's, state by state (spec "alfworld" 4).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

Binding = Mapping[str, str]  # placeholder -> entity id
Facts = Mapping[str, Any]  # predicate -> set of tuples of entity ids


class Grammar:
    """The rules of one grammar document. Stateless after construction, so every slot of a process may share it."""

    def __init__(self, document: str):
        """document: the `grammar` text of a game. Raises ValueError if it is no ALFWorld grammar."""
        from textworld.envs.pddl.logic import GameLogic

        try:
            logic = GameLogic(domain="", grammar=document)
        except Exception as error:  # TatSu raises a dozen kinds
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ValueError(f"the game's grammar cannot be parsed ({reason}); expected an ALFWorld grammar") from error
        self._rules = {
            name: [(_conjuncts(rule.condition), _compile(rule.rhs)) for rule in rules]
            for name, rules in logic.grammar._rules.items()
        }
        if "intro" not in self._rules:
            raise ValueError("the game's grammar has no rule 'intro'; expected an ALFWorld grammar")
        self._templates = {name: _phrase(action.template) for name, action in logic.actions.items()}
        self._feedback = {name: _phrase(action.feedback_rule) for name, action in logic.actions.items()}

    def command(self, action: str, binding: Binding, facts: Facts, names: Mapping[str, str]) -> str:
        """The text of a command. action: lower-case name. binding: its parameters. names: what entities are called."""
        return "".join(self._derive(self._templates[action], binding, facts, names))

    def feedback(self, action: str, binding: Binding, facts: Facts, names: Mapping[str, str]) -> str:
        """What the game answers to an action, once `facts` hold its effects."""
        return "".join(self._derive(self._feedback[action], binding, facts, names))

    def intro(self, facts: Facts, names: Mapping[str, str]) -> str:
        """The first observation."""
        return "".join(self._derive((("rule", "intro"),), {}, facts, names))

    def _derive(self, symbols: tuple, binding: Binding, facts: Facts, names: Mapping[str, str]) -> list[str]:
        out: list[str] = []
        for kind, value in symbols:
            if kind == "text":
                out.append(value)
            elif kind == "rule":
                out += self._derive(self._choose(value, binding, facts), binding, facts, names)
            elif kind == "entity":
                out.append(value(binding, names))
            else:  # "each", "list": one piece of text for every answer to the query
                body, query = value
                pieces = ["".join(self._derive(body, b, facts, names)) for b in _solve(query, 0, binding, facts)]
                out += pieces if kind == "each" else self._join(pieces, binding, facts, names)
        return out

    def _choose(self, rule: str, binding: Binding, facts: Facts) -> tuple:
        for condition, symbols in self._rules.get(rule, ()):
            if not condition or next(_solve(condition, 0, binding, facts), None) is not None:
                return symbols
        raise ValueError(f"the game's grammar offers no text for '{rule}'; expected an ALFWorld grammar")

    def _join(self, pieces: list[str], binding: Binding, facts: Facts, names: Mapping[str, str]) -> list[str]:
        if len(pieces) == 1:
            return pieces

        def rule(name: str) -> str:
            return "".join(self._derive((("rule", name),), binding, facts, names))

        if not pieces:
            return [rule("list_empty")]
        return [rule("list_separator").join(pieces[:-1]), rule("list_last_separator"), pieces[-1]]


@lru_cache(maxsize=8)
def grammar(document: str) -> Grammar:
    """The grammar of a document, parsed once a process (100 ms)."""
    return Grammar(document)


def _phrase(text: str) -> tuple:
    """The symbols of one template; `parse` of a one-rule grammar is TextWorld's public way to get them."""
    from textworld.envs.pddl.textgen import ContextSensitiveGrammar

    return _compile(ContextSensitiveGrammar.parse(json.dumps({"phrase": [{"rhs": text}]}))._rules["phrase"][0].rhs)


def _compile(symbols: list) -> tuple:
    return tuple(_symbol(symbol) for symbol in symbols)


def _symbol(symbol: Any) -> tuple[str, Any]:
    kind = type(symbol).__name__
    if kind == "TerminalSymbol":
        return "text", symbol.symbol
    if kind == "NonterminalSymbol":
        return "rule", symbol.symbol
    if kind == "EvalSymbol":
        return "entity", _expression(symbol.expression)
    if kind == "ConditionalSymbol":
        body = _symbol(symbol.expression)
        return ("each", ((body,), _conjuncts(symbol.given))) if symbol.given else body
    if kind == "ListSymbol" and type(symbol.symbol).__name__ == "ConditionalSymbol":
        return "list", ((_symbol(symbol.symbol.expression),), _conjuncts(symbol.symbol.given))
    raise ValueError(f"the game's grammar holds a {kind} that is not known; expected an ALFWorld grammar")


def _expression(text: str):
    """Compiles `o.indefinite + ' ' + o.name` to a function of (binding, names). A grammar is outside data: no eval."""

    def build(node):
        match node:
            case ast.Constant(value=str(value)):
                return lambda binding, names: value
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="name"):
                return lambda binding, names: names[binding[name]]
            case ast.Attribute(value=ast.Name(id=name), attr="id"):
                return lambda binding, names: binding[name]
            case ast.Attribute(value=ast.Name(), attr="indefinite"):
                return lambda binding, names: "a"
            case ast.Attribute(value=ast.Name(), attr="definite"):
                return lambda binding, names: "the"
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = build(left), build(right)
                return lambda binding, names: first(binding, names) + second(binding, names)
            case ast.BoolOp(op=ast.Or(), values=[left, right]):
                first, second = build(left), build(right)
                return lambda binding, names: first(binding, names) or second(binding, names)
        raise ValueError(f"the game's grammar holds the expression {text!r}; only entities' names may be joined")

    try:
        return build(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"the game's grammar holds the expression {text!r}, which is no expression") from error


@lru_cache(maxsize=256)
def _conjuncts(condition: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`openable(r:receptacle) & opened(r:receptacle)` as ((predicate, placeholders), ...)."""
    if not condition:
        return ()
    from textworld.logic import Rule

    # Types are dropped: every ALFWorld predicate takes one type at each place.
    return tuple((p.name, tuple(p.names)) for p in Rule.parse_conjunctive_query(condition).preconditions)


def _solve(query: tuple, depth: int, binding: Binding, facts: Facts):
    """Every extension of `binding` that satisfies the query, in TextWorld's order: facts sorted, left to right.

    Two placeholders never take the same entity.
    """
    if depth == len(query):
        yield binding
        return
    predicate, places = query[depth]
    known = facts.get(predicate, ())
    fixed = [(i, binding[place]) for i, place in enumerate(places) if place in binding]
    if len(fixed) == len(places):
        if tuple(entity for _, entity in fixed) in known:
            yield from _solve(query, depth + 1, binding, facts)
        return
    if len(fixed) == 1:  # the common case, so the fast one
        ((i, entity),) = fixed
        matches = sorted([fact for fact in known if fact[i] == entity])
    else:
        matches = sorted([fact for fact in known if all(fact[i] == entity for i, entity in fixed)])
    for fact in matches:
        extended = dict(binding)
        for place, entity in zip(places, fact, strict=True):
            if place not in extended:
                if entity in extended.values():
                    break
                extended[place] = entity
            elif extended[place] != entity:
                break
        else:
            yield from _solve(query, depth + 1, extended, facts)

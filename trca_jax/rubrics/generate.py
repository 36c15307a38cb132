"""The one offline question that a language model is asked for a rubric library, and how strictly its answer is read."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from trca_jax.rubrics.grammar import names_in, parse, scope
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.library import parse_library
from trca_jax.rubrics.schema import CATEGORIES, Declaration, Fact, Library, encode_bindings, encode_facts

PER_CATEGORY = 5
_SIZE, _WHEN, _DOC = 20_000, 300, 300  # characters
_NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")
_FENCE = re.compile(r"^```[a-z]*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
_ROLE = "You write rubrics: conditions by which single transitions of a text agent are judged without any model."
_RULES = """\
Write a library of exactly 15 operators: 5 of category "evidence" (the answer to the action shows something that the
task needs), 5 of "invalidity" (the action is malformed, refused, useless or undoes progress) and 5 of "execution" (the
action completes an operation that the task requires; together they are the way to a success). An operator is a
condition on one transition, that is one action and the environment's answer to it. It fires where the condition is
certainly true; an unknown value never fires. No condition knows later steps, the final result or anything hidden.

Evidence and execution should hold for a first time only, so that no repetition is paid. No two operators may mean the
same, and none may hold always or never.

Conditions are written in this language and in nothing else:
  condition  = condition and condition | condition or condition | not condition | (condition) | flag
             | number == != < <= > >= number | symbol == != symbol | symbol in symbols | symbol not in symbols
  number     = an integer | a name | count(symbols)
  symbol     = a 'quoted text' | a name
  symbols    = a name | symbols & symbols
Names are the facts and binding fields below. A condition must read at least one fact. With each = "field", where the
field is of kind symbols, the operator becomes one item for each member, and in its condition the field's name means
that member. An operator is judged only in tasks that bind all fields which its condition reads."""
_FORM = """\
Answer with one TOML file and nothing else:

benchmark = "{name}"

[[operator]]
name = "lower_case_name"
category = "evidence"
when = "the condition"
doc = "One sentence that says what it means."

(14 more operators; each = "field" is optional)

[context]
fields = ["context fields that make two situations comparable, neither too few nor too many"]"""


def question(name: str, declaration: Declaration) -> list[dict[str, str]]:
    """The messages that ask for a library of the benchmark `name`; all they tell of it is what it declares."""
    parts = [
        f"The benchmark is called {name}. Its commands:\n" + "\n".join(f"  {text}" for text in declaration.actions),
        "Facts of a transition:\n" + _listed(declaration.facts),
        "Binding fields, which say what the task itself asks for:\n" + _listed(declaration.fields),
        "Context fields, known before an action: " + ", ".join(declaration.contexts),
        _RULES,
        _FORM.format(name=name),
    ]
    return [{"role": "system", "content": _ROLE}, {"role": "user", "content": "\n\n".join(parts)}]


def _listed(entries: Iterable[Fact]) -> str:
    return "\n".join(f"  {entry.name} ({entry.kind}): {entry.doc}" for entry in entries)


def read_reply(text: str, name: str, declaration: Declaration) -> Library:
    """The library in a model's reply: the whole reply, or its one fenced block.

    Raises ValueError that names the operator, if there is one to name: for a reply that is too long or no TOML, for
    keys, names, facts or conditions that there are not, for a number of operators other than 5 of each category, and
    for two that read the same. Nothing of the reply is executed.
    """
    if len(text) > _SIZE:
        raise ValueError(f"the reply has {len(text)} characters, expected at most {_SIZE}")
    blocks = _FENCE.findall(text)
    if len(blocks) > 1:
        raise ValueError(f"the reply has {len(blocks)} fenced blocks, expected one TOML file")
    source = blocks[0] if blocks else text
    try:
        tomllib.loads(source)
    except ValueError as error:
        raise ValueError(f"the reply is not TOML ({error}); ask again, or mend the file by hand") from None
    library = parse_library(source, declaration.facts, declaration.fields, declaration.contexts)
    if library.benchmark != name:
        raise ValueError(f"the reply is for benchmark {library.benchmark!r}, expected {name!r}")
    _check_texts(library)
    return library


def _check_texts(library: Library) -> None:
    facts = {fact.name for fact in library.facts}
    first: dict[tuple[str, str | None], str] = {}
    for operator in library.operators:
        where = f"operator {operator.name[:40]!r}: "
        if not _NAME.fullmatch(operator.name):
            raise ValueError(f"{where}a name has 2 to 40 lower-case letters, digits and underscores")
        for key, limit in (("when", _WHEN), ("doc", _DOC)):
            value = getattr(operator, key)
            if len(value) > limit or not value.isprintable():
                raise ValueError(f"{where}{key} has {len(value)} characters, expected at most {limit}, all printable")
        tree = parse(operator.when, scope(library, operator))
        if not names_in(tree) & facts:
            raise ValueError(f"{where}its condition reads no fact, so it does not depend on the transition")
        same = first.setdefault((ast.unparse(tree), operator.each), operator.name)
        if same != operator.name:
            raise ValueError(f"{where}its condition is that of operator {same!r}; write another or drop one")
    for category in CATEGORIES:
        found = [operator.name for operator in library.operators if operator.category == category]
        if len(found) != PER_CATEGORY:
            raise ValueError(f"category {category} has {len(found)} operators {found}, expected {PER_CATEGORY}")


def check_on_sample(
    library: Library, facts: Sequence[Sequence[Mapping[str, Any]]], bindings: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """The share of sample transitions in which each operator fires, of those in tasks that bind it.

    facts: for each rollout those of its transitions; bindings: its task's. Raises ValueError for the first operator
    that is bound in no task, fires never or always, or fires exactly where another one does.
    """
    judge = Judge(library)
    symbols = judge.symbols()
    T = max(map(len, facts))
    judged, bound = judge(encode_facts(facts, library, symbols, T), encode_bindings(bindings, library, symbols))
    real = np.arange(T) < np.array([len(rows) for rows in facts])[:, None]
    items = [name.partition("[")[0] for name in judge.items]
    fired, where = {}, {}
    for operator in library.operators:
        own = [j for j, name in enumerate(items) if name == operator.name]
        fired[operator.name] = np.asarray(judged)[..., own].any(axis=2) & real
        where[operator.name] = np.asarray(bound)[:, own].any(axis=1)[:, None] & real
    shares = {}
    for name in fired:
        count, of = int(fired[name].sum()), int(where[name].sum())
        if of == 0:
            raise ValueError(f"operator {name!r}: no task of the sample binds the fields that its condition reads")
        if count in (0, of):
            often = "never" if count == 0 else "always"
            raise ValueError(f"operator {name!r}: fires {often} in {of} sample transitions; it tells nothing apart")
        shares[name] = count / of
    for one, two in combinations(fired, 2):
        if np.array_equal(fired[one], fired[two]):
            raise ValueError(f"operator {two!r}: fires exactly where {one!r} does in the sample; drop one of them")
    return shares


def render(library: Library) -> str:
    """The library as the text of a rubric.toml; `parse_library` gives the same library back."""
    lines = [f"benchmark = {_quoted(library.benchmark)}", ""]
    for operator in library.operators:
        keys = ("name", "category", "each", "when", "doc")
        values = [(key, getattr(operator, key)) for key in keys if getattr(operator, key) is not None]
        lines += ["[[operator]]", *(f"{key} = {_quoted(value)}" for key, value in values), ""]
    return "\n".join([*lines, "[context]", f"fields = [{', '.join(map(_quoted, library.context))}]", ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

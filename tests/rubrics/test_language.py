"""The condition language against hand-made truth tables and a loop oracle."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import BindingField, Fact, Library, Operator, encode_bindings, encode_facts

FACTS = (
    Fact("p", "flag", ""),
    Fact("q", "flag", ""),
    Fact("a", "symbol", ""),
    Fact("b", "symbol", ""),
    Fact("n", "number", ""),
    Fact("s", "symbols", "", 3),
    Fact("u", "symbols", "", 3),
)
FIELDS = (BindingField("goal", "symbol", ""), BindingField("options", "symbols", "", 2), BindingField("f", "flag", ""))


def library(*conditions: str, each: str | None = None) -> Library:
    operators = tuple(Operator(f"o{i}", "evidence", when, "", each) for i, when in enumerate(conditions))
    return Library("test", FACTS, FIELDS, operators, ("x",), "0")


def judge(conditions, row, binding=None, each=None):
    """Judgements of one transition, one per item, and bound."""
    lib = library(*conditions, each=each)
    compiled = Judge(lib)
    symbols = compiled.symbols()
    facts = encode_facts([[row]], lib, symbols, 1)
    bindings = encode_bindings([binding or {}], lib, symbols)
    fired, bound = compiled(facts, bindings)
    return np.asarray(fired)[0, 0].tolist(), np.asarray(bound)[0].tolist()


def certainly(when: str, row: dict) -> bool | None:
    """True, False or unknown (None), read off a condition and its negation."""
    (true, false), _ = judge([when, f"not ({when})"], row)
    assert not (true and false)
    return True if true else False if false else None


def test_kleene_tables_of_and_or_not():
    tables = {
        "p and q": {(1, 1): 1, (1, None): None, (None, None): None, (0, None): 0, (0, 1): 0, (0, 0): 0},
        "p or q": {(1, 1): 1, (1, None): 1, (None, None): None, (0, None): None, (0, 1): 1, (0, 0): 0},
    }
    flag = {1: True, 0: False, None: None}
    for when, table in tables.items():
        for (p, q), expected in table.items():
            for x, y in {(p, q), (q, p)}:
                assert certainly(when, {"p": flag[x], "q": flag[y]}) is flag[expected], (when, x, y)
    assert [certainly("not p", {"p": p}) for p in (True, False, None)] == [False, True, None]


def test_a_condition_and_its_negation_are_both_silent_on_unknown():
    assert certainly("p or not p", {}) is None  # Kleene, not classical: nothing is known, so nothing is credited
    assert certainly("a == a", {}) is None


@pytest.mark.parametrize(
    ("when", "row", "expected"),
    [
        ("a == b", {"a": "x", "b": "x"}, True),
        ("a == b", {"a": "x", "b": "y"}, False),
        ("a == b", {"a": "x"}, None),
        ("a != 'x'", {"a": "x"}, False),
        ("a != 'x'", {}, None),
        ("a == 'nothing'", {"a": "nothing"}, True),
        ("a in s", {"a": "x", "s": ("y", "x")}, True),
        ("a in s", {"a": "x", "s": ("y", "z")}, False),
        ("a in s", {"a": "x", "s": ()}, False),
        ("a in s", {"a": "x"}, None),
        ("a in s", {"s": ("x",)}, None),
        ("a in s", {"s": ()}, False),  # whatever a is, it is not in the empty set
        ("a in s", {"a": "x", "s": ("y", ...)}, None),
        ("a in s", {"a": "x", "s": ("x", ...)}, True),
        ("a in s", {"a": "x", "s": ("1", "2", "3", "4")}, None),  # wider than the array: x may be a dropped member
        ("a in s", {"a": "1", "s": ("1", "2", "3", "4")}, True),
        ("a not in s", {"a": "x", "s": ("y", ...)}, None),
        ("a not in s", {"a": "x", "s": ("y",)}, True),
        ("'x' in s", {"s": ("x",)}, True),
        ("count(s) == 2", {"s": ("x", "y")}, True),
        ("count(s) == 2", {"s": ("x", "x", "y")}, True),
        ("count(s) == 0", {"s": ()}, True),
        ("count(s) == 0", {}, None),
        ("count(s) >= 2", {"s": ("x", "y", ...)}, True),
        ("count(s) >= 3", {"s": ("x", "y", ...)}, None),
        ("count(s) < 2", {"s": ("x", "y", ...)}, False),
        ("count(s & u) == 1", {"s": ("x", "y"), "u": ("y", "z")}, True),
        ("count(s & u) == 1", {"s": ("x", "y"), "u": ("y", ...)}, None),
        ("count(s & u) >= 1", {"s": ("x", "y"), "u": ("y", ...)}, True),
        ("count(s & u) == 0", {"s": ()}, True),
        ("'x' in s & u", {"s": ("x",), "u": ("x",)}, True),
        ("n < 3", {"n": 2.5}, True),
        ("n <= 3", {"n": 3}, True),
        ("n > 3", {"n": 3}, False),
        ("n >= 3", {"n": 3}, True),
        ("n == 3", {"n": 4}, False),
        ("n != 3", {"n": 4}, True),
        ("3 < n", {}, None),
        ("n == n", {}, None),
        ("n < count(s)", {"n": 1, "s": ("x", "y")}, True),
    ],
)
def test_leaf(when, row, expected):
    assert certainly(when, row) is expected


def test_each_gives_one_item_per_bound_slot():
    row = {"s": ("red", "xl")}
    assert judge(["options in s"], row, {"options": ("red", "blue")}, each="options") == ([True, False], [True, True])
    assert judge(["options in s"], row, {"options": ("xl",)}, each="options") == ([True, False], [True, False])
    assert judge(["options in s"], row, {"options": ()}, each="options") == ([False, False], [False, False])
    assert judge(["options in s"], row, {}, each="options") == ([False, False], [False, False])


def test_bound_iff_every_named_field_is_known_and_no_unbound_item_fires():
    conditions = ["p", "p or a == goal", "p or f", "p or a in options"]
    fired, bound = judge(conditions, {"p": True}, {"goal": "x", "f": False, "options": ("y",)})
    assert (fired, bound) == ([True] * 4, [True] * 4)
    fired, bound = judge(conditions, {"p": True}, {"options": ()})
    assert (fired, bound) == ([True, False, False, False], [True, False, False, False])


def test_steps_after_the_end_never_fire():
    lib = library("p", "not p", "count(s) == 0")
    compiled = Judge(lib)
    symbols = compiled.symbols()
    facts = encode_facts([[{"p": True, "s": ()}], []], lib, symbols, 3)
    fired, _ = compiled(facts, encode_bindings([{}, {}], lib, symbols))
    assert np.asarray(fired).tolist() == [[[True, False, True], [False] * 3, [False] * 3], [[False] * 3] * 3]


def test_items_and_categories():
    operators = (
        Operator("x", "execution", "options in s", "", each="options"),
        Operator("y", "evidence", "p", ""),
        Operator("z", "invalidity", "q", ""),
    )
    compiled = Judge(Library("test", FACTS, FIELDS, operators, ("x",), "0"))
    assert compiled.items == ("x[0]", "x[1]", "y", "z")
    assert compiled.category.tolist() == [2, 2, 0, 1]


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("r", "unknown name 'r'"),
        ("p and", "not a condition"),
        ("a", "a is a symbol"),
        ("a < b", "a is a symbol, a number is needed"),
        ("a == 1", "1 is a number, a symbol is needed"),
        ("p == q", "compare two symbols or two numbers"),
        ("s == u", "compare two symbols or two numbers"),
        ("a in b", "b is a symbol, a symbols is needed"),
        ("n and p", "n is a number, a flag is needed"),
        ("1 < n < 3", "chained"),
        ("a is b", "use =="),
        ("count(a) > 1", "a is a symbol, a symbols is needed"),
        ("len(s) > 1", "not part of the language"),
        ("count(s, u) > 1", "not part of the language"),
        ("p if q else p", "not part of the language"),
        ("True", "not part of the language"),
        ("__import__('os')", "not part of the language"),
        ("a.b == 'x'", "not part of the language"),
        ("(lambda: p)()", "not part of the language"),
        ("n == 1.5", "not part of the language"),
        ("n == 99999999", "too large"),
        ("n + 1 > 2", "not part of the language"),
    ],
)
def test_errors_name_the_operator_and_the_fault(when, says):
    with pytest.raises(ValueError, match="operator 'o0'") as caught:
        Judge(library(when))
    assert says in str(caught.value)


def test_errors_of_category_each_and_names():
    with pytest.raises(ValueError, match=r"operator 'o': category 'fun' is not one of evidence"):
        Judge(dataclasses.replace(library("p"), operators=(Operator("o", "fun", "p", ""),)))
    for each in ("goal", "s", "nobody"):
        with pytest.raises(ValueError, match=f"each = '{each}' is not a set-valued binding field"):
            Judge(library("p", each=each))
    with pytest.raises(ValueError, match="each = 'options' is not used"):
        Judge(library("p", each="options"))
    with pytest.raises(ValueError, match=r"operators with the same name: \['o'\]"):
        Judge(dataclasses.replace(library("p"), operators=(Operator("o", "evidence", "p", ""),) * 2))


# A random condition with an oracle for its value, built side by side: evaluated over every way to fill in what is
# unknown, a certain judgement must hold in all of them (soundness).

WORDS = ("x", "y")
DOMAIN = {
    "p": (True, False),
    "q": (True, False),
    "a": (*WORDS, "z"),
    "b": (*WORDS, "z"),
    "n": (0, 1, 2),
    "s": ((), ("x",), ("y",), ("x", "y")),
    "u": ((), ("x",), ("y",), ("x", "y")),
}
LEAVES = (
    ("p", lambda v: v["p"]),
    ("q", lambda v: v["q"]),
    ("a == b", lambda v: v["a"] == v["b"]),
    ("a != 'x'", lambda v: v["a"] != "x"),
    ("a in s", lambda v: v["a"] in v["s"]),
    ("b not in u", lambda v: v["b"] not in v["u"]),
    ("n < 2", lambda v: v["n"] < 2),
    ("n >= 1", lambda v: v["n"] >= 1),
    ("count(s) > n", lambda v: len(v["s"]) > v["n"]),
    ("count(s & u) == 1", lambda v: len(set(v["s"]) & set(v["u"])) == 1),
    ("a in s & u", lambda v: v["a"] in set(v["s"]) & set(v["u"])),
)


def _combine(children):
    both = st.tuples(children, children)
    return st.one_of(
        both.map(lambda c: (f"({c[0][0]}) and ({c[1][0]})", lambda v: c[0][1](v) and c[1][1](v))),
        both.map(lambda c: (f"({c[0][0]}) or ({c[1][0]})", lambda v: c[0][1](v) or c[1][1](v))),
        children.map(lambda c: (f"not ({c[0]})", lambda v: not c[1](v))),
    )


CONDITIONS = st.recursive(st.sampled_from(LEAVES), _combine, max_leaves=4)
ROWS = st.lists(
    st.fixed_dictionaries({name: st.sampled_from((None, *values)) for name, values in DOMAIN.items()}),
    min_size=6,
    max_size=6,
)


@settings(max_examples=25, deadline=None)
@given(condition=CONDITIONS, rows=ROWS)
def test_sound_whatever_the_unknown_turns_out_to_be(condition, rows):
    when, oracle = condition
    lib = library(when, f"not ({when})")
    compiled = Judge(lib)
    symbols = compiled.symbols()
    fired, _ = compiled(encode_facts([rows], lib, symbols, len(rows)), encode_bindings([{}], lib, symbols))
    for row, (true, false) in zip(rows, np.asarray(fired)[0], strict=True):
        choices = [DOMAIN[name] if value is None else (value,) for name, value in row.items()]
        outcomes = {bool(oracle(dict(zip(row, world, strict=True)))) for world in itertools.product(*choices)}
        assert not true or outcomes == {True}, (when, row)
        assert not false or outcomes == {False}, (when, row)
        if None not in row.values():
            assert true == (outcomes == {True}), (when, row)
            assert false == (outcomes == {False}), (when, row)


@settings(max_examples=25, deadline=None)
@given(condition=CONDITIONS, rows=ROWS, data=st.data())
def test_knowing_less_never_adds_a_judgement(condition, rows, data):
    when, _ = condition
    forgotten = [{name: None if data.draw(st.booleans()) else value for name, value in row.items()} for row in rows]
    lib = library(when, f"not ({when})")
    compiled = Judge(lib)
    symbols = compiled.symbols()
    facts = encode_facts([rows, forgotten], lib, symbols, len(rows))
    more, less = np.asarray(compiled(facts, encode_bindings([{}, {}], lib, symbols))[0])
    assert not (less & ~more).any(), (when, rows, forgotten)

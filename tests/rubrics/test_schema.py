"""How facts and bindings become arrays."""

import numpy as np
import pytest

from trca_jax.rubrics.schema import (
    BindingField,
    Fact,
    Library,
    SymbolTable,
    encode_bindings,
    encode_facts,
)

FACTS = (
    Fact("accepted", "flag", ""),
    Fact("holding", "symbol", ""),
    Fact("price", "number", ""),
    Fact("revealed", "symbols", "", 2),
)
FIELDS = (BindingField("target", "symbol", ""), BindingField("options", "symbols", "", 2))
LIBRARY = Library("test", FACTS, FIELDS, (), ("x",), "0")


def test_every_kind_known_unknown_and_padded():
    rows = [
        [
            {"accepted": True, "holding": "apple", "price": 2.5, "revealed": ("mug", "apple")},
            {"accepted": False, "holding": None, "price": None, "revealed": ()},
        ],
        [{"revealed": None}],
    ]
    symbols = SymbolTable(["nothing"])
    out = encode_facts(rows, LIBRARY, symbols, 3)
    apple, mug = symbols["apple"], symbols["mug"]
    assert sorted({apple, mug}) == [2, 3]  # 0 is unknown, 1 the literal
    assert out["accepted"].tolist() == [[1, 0, -1], [-1, -1, -1]]
    assert out["holding"].tolist() == [[apple, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(out["price"], np.array([[2.5, np.nan, np.nan], [np.nan] * 3], np.float32))
    assert out["revealed"].tolist() == [[[1, mug, apple], [1, 0, 0], [0, 0, 0]], [[0, 0, 0]] * 3]
    assert [out[name].dtype for name in ("accepted", "holding", "price", "revealed")] == [
        np.int8,
        np.int32,
        np.float32,
        np.int32,
    ]


def test_sets_that_may_have_more_members_are_not_marked_complete():
    symbols = SymbolTable()
    rows = [[{"revealed": ("a", ...)}, {"revealed": ("a", "b", "c")}, {"revealed": ("a", "b", "a")}]]
    a, b = symbols["a"], symbols["b"]
    assert encode_facts(rows, LIBRARY, symbols, 3)["revealed"].tolist() == [[[0, a, 0], [0, a, b], [1, a, b]]]


def test_bindings_and_facts_share_ids():
    symbols = SymbolTable()
    bindings = encode_bindings([{"target": "apple", "options": ("mug",)}, {}], LIBRARY, symbols)
    facts = encode_facts([[{"holding": "mug"}], [{"holding": "apple"}]], LIBRARY, symbols, 1)
    assert bindings["target"].tolist() == [facts["holding"][1, 0], 0]
    assert bindings["options"].tolist() == [[1, facts["holding"][0, 0], 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"accepted": "yes"}, "'accepted' is a flag"),
        ({"holding": 3}, "'holding' is a symbol"),
        ({"price": "cheap"}, "'price' is a number"),
        ({"revealed": ["a"]}, "'revealed' is a symbols"),
        ({"revealed": "ab"}, "'revealed' is a symbols"),
        ({"revealed": ("a", None)}, "has a member None"),
        ({"won": True}, r"\['won'\] not declared"),
    ],
)
def test_wrong_values_are_named(row, says):
    with pytest.raises(ValueError, match=says):
        encode_facts([[row]], LIBRARY, SymbolTable(), 1)


def test_too_long_an_episode_is_named():
    with pytest.raises(ValueError, match="episode 1 has 3 transitions, the arrays hold T=2"):
        encode_facts([[{}], [{}] * 3], LIBRARY, SymbolTable(), 2)


@pytest.mark.parametrize(("kind", "width"), [("symbols", 0), ("flag", 2), ("words", 0)])
def test_wrong_declarations_are_refused(kind, width):
    with pytest.raises(ValueError, match="fact 'x'"):
        Fact("x", kind, "", width)

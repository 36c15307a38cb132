"""Reading, checking and fingerprinting a rubric file."""

import pytest

from trca_jax.rubrics.library import parse_library, read_library, select
from trca_jax.rubrics.schema import BindingField, Fact

FACTS = (Fact("accepted", "flag", ""), Fact("revealed", "symbols", "", 2))
FIELDS = (BindingField("target", "symbol", ""),)
CONTEXTS = ("place", "stage")
TEXT = """
benchmark = "test"
[[operator]]
name = "seen"
category = "evidence"
when = "accepted and target in revealed"
doc = "A target is seen."
[context]
fields = ["place"]
"""


def read(text=TEXT):
    return parse_library(text, FACTS, FIELDS, CONTEXTS)


def test_reads_every_part():
    library = read()
    assert (library.benchmark, library.context, library.facts, library.fields) == ("test", ("place",), FACTS, FIELDS)
    (operator,) = library.operators
    assert (operator.name, operator.category, operator.each) == ("seen", "evidence", None)
    assert operator.when == "accepted and target in revealed"


def test_fingerprint_sees_meaning_not_layout():
    same = read("# a comment\n" + TEXT.replace("accepted and", "accepted   and"))
    assert same.fingerprint == read().fingerprint
    assert len(read().fingerprint) == 64
    assert read(TEXT.replace("accepted and", "accepted or")).fingerprint != read().fingerprint
    assert read(TEXT.replace('"place"', '"stage"')).fingerprint != read().fingerprint
    wider = (FACTS[0], Fact("revealed", "symbols", "", 3))
    assert parse_library(TEXT, wider, FIELDS, CONTEXTS).fingerprint != read().fingerprint


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('benchmark = "test"', "", r"lacks \['benchmark'\]"),
        ('doc = "A target is seen."', "", r"operator 1 lacks \['doc'\]"),
        ('doc = "A target is seen."', 'doc = ""', "'seen': doc is ''"),
        ('name = "seen"', 'name = "seen"\nwho = "x"', r"operator 1 has unknown keys \['who'\]"),
        ("accepted and", "accepted nad", "operator 'seen': when: not a condition"),
        ("target in", "goal in", "operator 'seen': when: unknown name 'goal'"),
        ('"evidence"', '"evidences"', "operator 'seen': category 'evidences'"),
        ('["place"]', '"place"', "expected a list of names"),
        ('["place"]', '["room"]', "'room' is unknown, expected some of place, stage"),
        ("[[operator]]", "[operator]", "no operator"),
        ("benchmark", "benchmark = ", "Invalid value"),
    ],
)
def test_faults_are_named(tmp_path, old, new, says):
    path = tmp_path / "rubric.toml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(ValueError, match=says) as caught:
        read_library(path, FACTS, FIELDS, CONTEXTS)
    assert str(path) in str(caught.value)


def test_missing_file_is_a_clear_error(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        read_library(tmp_path / "no.toml", FACTS, FIELDS, CONTEXTS)


OPERATOR = TEXT[TEXT.index("[[") : TEXT.index("[context]")]
TWO = TEXT.replace("[context]", OPERATOR.replace('"seen"', '"again"') + "[context]")


def test_a_selection_has_its_own_context_and_operators():
    whole = read(TWO)
    assert [operator.name for operator in whole.operators] == ["seen", "again"]
    assert select(whole, CONTEXTS, (), ()) == whole
    assert select(whole, CONTEXTS, ("stage", "place"), ()).context == ("stage", "place")
    narrow = select(whole, CONTEXTS, (), ("again",))
    assert [operator.name for operator in narrow.operators] == ["seen"] and narrow.context == whole.context
    assert narrow == read()  # also in its fingerprint


@pytest.mark.parametrize(
    ("context", "without", "says"),
    [
        (("room",), (), "context field 'room' of test is unknown, expected place, stage"),
        ((), ("sen",), "operator 'sen' of test is unknown, expected seen"),
        ((), ("seen",), "all operators of test are left out"),
    ],
)
def test_a_selection_of_what_there_is_not_is_refused(context, without, says):
    with pytest.raises(ValueError, match=says):
        select(read(), CONTEXTS, context, without)

"""The question for a library, and every way in which an answer can be wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.rubrics.generate import check_on_sample, question, read_reply, render
from trca_jax.rubrics.library import parse_library
from trca_jax.rubrics.schema import CATEGORIES, BindingField, Declaration, Fact

DECLARED = Declaration(
    facts=(
        Fact("parsed", "flag", "An action was found."),
        Fact("opened", "symbol", "Colour seen for the first time."),
        Fact("seen", "symbols", "Colours seen.", width=3),
        Fact("steps", "number", "Steps taken."),
    ),
    fields=(BindingField("goal", "symbol", "The colour asked for."), BindingField("both", "symbols", "Two.", width=2)),
    contexts=("opened", "stage"),
    actions=("open {box}", "wait"),
)
WHENS = {
    "evidence": [
        "opened == goal",
        "goal in seen",
        "count(seen) > 1",
        "count(seen) == 1",
        "opened == 'green' or opened == 'blue'",
    ],
    "invalidity": ["not parsed", "parsed and steps > 3", "steps > 4", "opened == 'blue'", "count(seen) == 0"],
    "execution": ["steps == 1", "steps == 2", "steps == 3", "opened != goal", "both in seen"],
}


def operators():
    """Fifteen good operators, as tables."""
    tables = [
        {"name": f"{category}_{n}", "category": category, "when": when, "doc": "It is so."}
        for category in CATEGORIES
        for n, when in enumerate(WHENS[category])
    ]
    tables[-1]["each"] = "both"
    return tables


def toml(tables, context=("stage",), benchmark="boxes"):
    parts = [f"benchmark = {json.dumps(benchmark)}"]
    parts += ["[[operator]]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in table.items()) for table in tables]
    return "\n\n".join([*parts, f"[context]\nfields = {json.dumps(list(context))}"]) + "\n"


def read(text):
    return read_reply(text, "boxes", DECLARED)


def test_the_question_tells_all_that_is_declared():
    system, user = question("boxes", DECLARED)
    assert (system["role"], user["role"]) == ("system", "user")
    for text in (
        "open {box}", "parsed (flag): An action was found.", "seen (symbols): Colours seen.",
        "goal (symbol): The colour asked for.", "opened, stage", 'benchmark = "boxes"', "exactly 15 operators",
    ):  # fmt: skip
        assert text in user["content"]


@pytest.mark.parametrize("wrap", ["{}", "```toml\n{}```", "Here it is:\n\n```\n{}```\nGood luck!\n"])
def test_a_good_answer_is_read_bare_or_fenced(wrap):
    library = read(wrap.format(toml(operators())))
    assert [op.when for op in library.operators] == [when for c in CATEGORIES for when in WHENS[c]]
    assert library.operators[-1].each == "both" and library.context == ("stage",)


def test_what_is_written_reads_as_the_same_library():
    tables = operators()
    tables[0]["doc"] = 'A "quoted" back\\slash, ümläut and\nnew line.'
    library = read(toml(tables))
    again = parse_library(render(library), DECLARED.facts, DECLARED.fields, DECLARED.contexts)
    assert again == library and again.fingerprint == library.fingerprint
    assert render(again) == render(library)


@given(st.text(min_size=1, max_size=40))
def test_any_text_that_is_accepted_survives_the_file(doc):
    tables = operators()
    tables[3]["doc"] = doc
    try:
        library = read(toml(tables))
    except ValueError:
        return
    assert parse_library(render(library), DECLARED.facts, DECLARED.fields, DECLARED.contexts) == library


def changed(place, **keys):
    tables = operators()
    tables[place] |= keys
    return toml(tables)


@pytest.mark.parametrize(
    "text, says",
    [
        ("I would rather not.", r"the reply is not TOML \(.*\); ask again"),
        ("", "lacks \\['benchmark', 'context', 'operator'\\]"),
        ("```toml\na = 1\n```\n```toml\nb = 2\n```\n", "2 fenced blocks, expected one"),
        ("#" * 30_000, "30000 characters, expected at most 20000"),
        (toml(operators(), benchmark="alfworld"), "for benchmark 'alfworld', expected 'boxes'"),
        (toml(operators(), context=["gold"]), "'gold' is unknown, expected some of opened, stage"),
        (changed(0, when="reward > 0"), "operator 'evidence_0': when: unknown name 'reward'"),
        (changed(1, when="__import__('os').system('true')"), "'evidence_1': when: .* is not part of the language"),
        (changed(1, when="(lambda: parsed)()"), "'evidence_1': when: .* is not part of the language"),
        (changed(1, when="seen.__class__ == goal"), "'evidence_1': when: .* is not part of the language"),
        (changed(1, when="[parsed for parsed in seen]"), "'evidence_1': when: .* is not part of the language"),
        (changed(2, when="import os"), "operator 'evidence_2': when: not a condition"),
        (changed(2, when="opened"), "operator 'evidence_2': when: opened is a symbol"),
        (changed(4, when="goal == 'red'"), "operator 'evidence_4': its condition reads no fact"),
        (changed(4, code="print(1)"), r"operator 5 has unknown keys \['code'\]"),
        (changed(5, when="parsed and " * 40 + "parsed"), "operator 'invalidity_0': when has 446 characters"),
        (changed(5, doc="x" * 301), "operator 'invalidity_0': doc has 301 characters, expected at most 300"),
        (changed(5, doc="go \u202e back"), "operator 'invalidity_0': doc has 9 characters, .* all printable"),
        (changed(6, name="rm -rf"), "operator 'rm -rf': a name has 2 to 40 lower-case letters"),
        (changed(6, name="invalidity_2"), r"operators with the same name: \['invalidity_2'\]"),
        (changed(7, when="not  (parsed)"), "operator 'invalidity_2': its condition is that of operator 'invalidity_0'"),
        (changed(14, each="goal"), "operator 'execution_4': each = 'goal' is not a set-valued binding field"),
        (changed(10, category="evidence"), r"category evidence has 6 operators .*'execution_0'.*, expected 5"),
        (toml(operators()[:-1]), "category execution has 4 operators"),
    ],
)  # fmt: skip
def test_a_bad_answer_names_what_is_wrong(text, says):
    with pytest.raises(ValueError, match=says):
        read(text)


def test_nothing_of_an_answer_is_run(tmp_path):
    trace = tmp_path / "trace"
    for when in (f"open('{trace}', 'w')", f"exec('open({str(trace)!r}, chr(119))')", f"f'{{open({str(trace)!r})}}'"):
        with pytest.raises(ValueError, match="operator 'evidence_0'"):
            read(changed(0, when=when))
    assert not trace.exists()


def step(opened=None, seen=(), steps=1, parsed=True):
    return {"parsed": parsed, "opened": opened, "seen": seen, "steps": steps}


FACTS = [
    [step("red", ("red",), 1), step("green", ("red", "green"), 2), step("blue", ("blue",), 3), step("red", (), 4)],
    [step(None, (), 1, parsed=False), step("blue", ("blue", "green"), 5)],
]
BINDINGS = [{"goal": "red", "both": ("red", "green")}, {"goal": "blue", "both": None}]


def test_shares_are_of_the_transitions_that_bind_an_operator():
    library = read(toml(operators()))
    shares = check_on_sample(library, FACTS, BINDINGS)
    assert shares["evidence_0"] == 3 / 6 and shares["invalidity_0"] == 1 / 6
    assert shares["execution_4"] == 2 / 4  # red or green seen, where both are asked for
    assert shares["invalidity_2"] == 1 / 6 and list(shares) == [op.name for op in library.operators]


@pytest.mark.parametrize(
    "place, when, says",
    [
        (2, "count(seen) > 2", "operator 'evidence_2': fires never in 6 sample transitions"),
        (2, "steps < 9", "operator 'evidence_2': fires always in 6 sample transitions"),
        (11, "parsed and steps == 5", "operator 'execution_1': fires exactly where 'invalidity_2' does"),
    ],
)
def test_operators_that_tell_nothing_apart_are_refused(place, when, says):
    with pytest.raises(ValueError, match=says):
        check_on_sample(read(changed(place, when=when)), FACTS, BINDINGS)


def test_an_operator_that_no_task_binds_is_refused():
    with pytest.raises(ValueError, match="operator 'execution_4': no task of the sample binds the fields"):
        check_on_sample(read(toml(operators())), FACTS, [BINDINGS[1], BINDINGS[1]])

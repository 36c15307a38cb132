"""Observation texts in both protocols, and how much of the golden documents they hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from searchqa_worlds import results, search, task

from trca_jax.envs.searchqa import Searchqa
from trca_jax.envs.searchqa.golden import golden_match
from trca_jax.envs.searchqa.retrieval import Passage
from trca_jax.envs.searchqa.texts import PROTOCOLS, SEARCH_R1, VERL_AGENT, Document, information, read_information


def test_both_protocols():
    passages = [Passage("1", "Lōʻihi", 'a "big"\nseamount', 2.0), Passage("2", "B", "b", 1.0)]
    assert information(passages, SEARCH_R1) == (
        '<information>Doc 1(Title: "Lōʻihi") a "big" seamount\nDoc 2(Title: "B") b</information>'
    )
    text = information(passages, VERL_AGENT)
    assert "L\\u014d" in text and text.isascii()
    assert json.loads(text[13:-14]) == {"result": 'Doc 1: "Lōʻihi"\na "big" seamount\nDoc 2: "B"\nb'}
    assert information([], VERL_AGENT) == '<information>{"result": "No search results found."}</information>'


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.lists(st.tuples(st.text("Tt \"'é.", max_size=6), st.text('ab <>/{}"\n1:', max_size=30)), max_size=3))
def test_what_is_written_is_read(protocol, found):
    found = [(f"T{title}".replace('") ', ""), f"x {text}") for title, text in found]
    passages = [Passage(str(n), title, text, 1.0) for n, (title, text) in enumerate(found)]
    expected = tuple(Document(" ".join(title.split()), " ".join(text.split())) for title, text in found)
    if protocol == SEARCH_R1 and any('"' in title for title, _ in found):
        return  # a title with a quotation mark cannot be told from its end there
    assert read_information(information(passages, protocol)) == expected


@pytest.mark.parametrize(
    "text", ["", "Who?", "<information>", "<information>x</information>", '<information>{"a": 1}</information>',
             '<information>{"result": 3}</information>', '<information>{"result": "Search error"}</information>',
             '<information>{"result": </information>']
)  # fmt: skip
def test_other_texts_are_no_results(text):
    assert read_information(text) is None


def test_golden_documents_are_matched_and_repeats_counted():
    gold = [[Document("Tarn", "Tarn is a river")], [Document("Ada", "Ada was born"), Document("Ada", "Ada wrote")]]
    seen = [results(("Tarn", "Tarn is a river"), ("X", "y")), "", results(("X", "y"), ("Ada", "Ada wrote"), ("X", "y"))]
    similarity, redundancy = golden_match(seen, gold)
    assert similarity[0][0] == pytest.approx(1.0) and similarity[0][1] == 0.0
    assert similarity[1] == [0.0, 0.0] and similarity[2][1] == pytest.approx(1.0)
    assert redundancy == pytest.approx([0.0, 0.0, 2 / 3])
    # By hand: two texts of one common word in two, n = 2, idf of the common word 1, of the others ln(3/2) + 1.
    rare = 1.4054651081081644
    ((value,),), _ = golden_match([results(("a", "b"))], [[Document("a", "c")]])
    assert value == pytest.approx(1 / (1 + rare**2))


def test_the_benchmark_knows_its_golden_documents_and_answers():
    benchmark = Searchqa()
    game = next(game for game in benchmark.tasks("test") if game.kind == "bridge")
    env = benchmark.make_env()
    env.reset(game)
    seen = [env.step(search(title)).text for title in game.payload.supporting_titles]
    similarity, redundancy = benchmark.golden(game, [*seen, seen[0]])
    assert [similarity[0][0], similarity[1][1]] == pytest.approx([1.0, 1.0])
    assert redundancy == [0.0, pytest.approx(redundancy[1]), 1.0] and redundancy[1] < 1
    assert benchmark.gold(game) == game.payload.golden_answers[0]
    assert benchmark.golden(task("Who?"), ["Who?"]) == ([[]], [0.0])

"""Answers against the public scorers' verdicts."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.envs.searchqa.scoring import contains, exact_match, f1, normalize


@pytest.fixture(scope="module")
def golden_em(shared_data):
    return json.loads((shared_data / "searchqa" / "golden_em.json").read_text())["em"]


def test_exact_match_and_containment_on_the_recorded_answers(golden_em):
    assert len(golden_em) == 36
    for case in golden_em:
        prediction, golds = case["prediction"], case["golden_answers"]
        assert normalize(prediction) == case["normalized_prediction"], case["note"]
        assert exact_match(prediction, golds) == case["em"], case["note"]
        assert contains(prediction, golds) == case["sub_em"], case["note"]


def test_the_metrics_of_the_search_baselines(shared_data):
    recorded = json.loads((shared_data / "golden" / "search_rewards.json").read_text())
    assert len(recorded["normalize"]) == 12 and len(recorded["metrics"]) == 10
    for case in recorded["normalize"]:
        assert normalize(case["text"]) == case["normalized"]
    for case in recorded["metrics"]:
        prediction, golds = case["prediction"], case["golds"]
        assert exact_match(prediction, golds) == case["em_search_r1"], case
        assert contains(prediction, golds) == case["subem_search_r1"] == case["contains_zerosearch"], case
        assert f1(prediction, golds) == pytest.approx(case["f1_zerosearch"], abs=1e-12), case
        assert round(f1(prediction, golds), 4) == case["f1_stepsearch"], case


def test_a_very_long_answer_is_scored():
    assert exact_match("the " * 25_000 + "end", ["End."]) == 1.0
    assert f1("word " * 20_000, ["word"]) == 2 / 20_001
    assert exact_match("x" * 100_000, ["x"]) == 0.0


def test_no_gold_is_zero():
    assert (exact_match("", []), contains("", []), f1("x", [])) == (0.0, 0.0, 0.0)


@given(st.text(), st.lists(st.text(), max_size=3))
def test_exact_match_implies_containment_and_full_f1(answer, golds):
    match = exact_match(answer, golds)
    assert contains(answer, golds) >= match
    if match and normalize(answer):
        assert f1(answer, golds) == 1.0
    assert 0.0 <= f1(answer, golds) <= 1.0


@given(st.text(alphabet=string.ascii_letters + string.punctuation + " \t", max_size=40))
def test_what_is_normalised_stays_but_for_articles_that_deletion_made(text):
    once = normalize(text)
    assert not set(once) & set(string.punctuation) and once == " ".join(once.split()) == once.lower()
    assert not {"a", "an", "the"} & set(once.split())

"""Rewards of the search baselines against their public code."""

import json

import pytest

from trca_jax.envs.searchqa.rewards import (
    key_score,
    last_answer,
    noise_probability,
    search_r1_reward,
    stepsearch_reward,
    well_formed,
)
from trca_jax.envs.searchqa.scoring import exact_match


@pytest.fixture(scope="module")
def golden(shared_data):
    return json.loads((shared_data / "golden" / "search_rewards.json").read_text())


def test_extraction_as_search_r1_and_as_verl_agent(shared_data):
    cases = json.loads((shared_data / "searchqa" / "golden_em.json").read_text())["extract"]
    assert len(cases) == 9
    for case in cases:
        assert last_answer(case["text"], at_least=2) == case["search_r1_extract"], case["text"]
        assert last_answer(case["text"]) == case["verl_agent_extract"], case["text"]


def test_search_r1_rewards(golden):
    assert len(golden["cases"]) == 8
    for case in golden["cases"]:
        text, golds = case["text"], case["golds"]
        answer = last_answer(text, at_least=2)
        transcript = text.split("<|im_start|>assistant", 1)[1]
        assert well_formed(transcript) == case["valid_sequence"], case["name"]
        assert float(answer is not None and exact_match(answer, golds)) == case["em_score"], case["name"]
        for name, worth in [
            ("format_default", {}),
            ("format_v03", {"structure": 0.2, "final": 0.1}),
            ("format_retrieval", {"structure": 0.2, "final": 0.1, "retrieval": 0.1}),
        ]:
            assert search_r1_reward(transcript, answer, golds, **worth) == pytest.approx(case[name]), case["name"]


def test_zerosearch_curriculum(golden):
    assert len(golden["zerosearch_curriculum"]) == 32
    for case in golden["zerosearch_curriculum"]:
        found = noise_probability(case["start"], case["end"], case["step"], case["total_steps"])
        assert found == pytest.approx(case["noise_probability"], abs=1e-12), case
    with pytest.raises(ValueError, match="total is 0 training steps"):
        noise_probability(0.0, 0.5, 1, 0)


def test_stepsearch_key_queries(shared_data):
    cases = json.loads((shared_data / "golden" / "stepsearch.json").read_text())["search_key_cases"]
    assert len(cases) == 6
    for case in cases:
        assert key_score(case["searches"], case["keys"]) == pytest.approx(case["score"], abs=1e-12), case["searches"]
    assert key_score(["anything"], []) == 0.0


def test_stepsearch_adds_keys_to_the_answer_and_punishes_none():
    keys = [["capital of france"], ["river paris"]]
    assert stepsearch_reward("Seine river", ["the Seine"], ["capital of france"], keys) == pytest.approx(0.6667 + 0.309)
    assert stepsearch_reward(None, ["x"], ["capital of france"], keys) == -1.0


@pytest.mark.parametrize(
    ("transcript", "good"),
    [
        ("<think></think>\n<answer></answer>\n", True),
        ("<answer>Rome</answer>", False),
        ("<think>a</think><search>b</search><think>c</think><answer>d</answer>", False),
        ("<think>a <answer> b</think><answer>c</answer>", False),
        ("<think>a</think><answer>b</answer> c", False),
        ("<think></think><search></search> <information></information>" * 3 + "<think></think><answer></answer>", True),
    ],
)  # fmt: skip
def test_forms(transcript, good):
    assert well_formed(transcript) is good


def test_a_passage_with_tags_makes_no_form_good_and_a_long_text_is_read():
    poisoned = "<think>a</think><search>b</search><information><answer>c</answer></information>"
    assert not well_formed(poisoned)
    assert last_answer("<answer>" * 20_000) is None
    assert well_formed(f"<think>{'a < b ' * 20_000}</think><answer>c</answer>")

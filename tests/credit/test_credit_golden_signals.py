"""Methods that read signals of a model, against stored outputs of public code (hcapo: of separate loops)."""

import json

import jax
import numpy as np
import pytest
from credit_batches import batch_of, batch_of_rows, dense, pad

from trca_jax.credit import make
from trca_jax.credit.igpo import information_gain
from trca_jax.credit.stepsearch import documents_gain
from trca_jax.credit.trace import state_values

PRECISIONS = [pytest.param(True, id="float64"), pytest.param(False, id="float32")]


def golden(shared_data, name, x64=True):
    """The file; every third case in float32."""
    content = json.loads((shared_data / "golden" / f"{name}.json").read_text())
    return content | {"cases": content["cases"][:: 1 if x64 else 3]}


def close(actual, expected, x64, tolerance=1e-9):
    tolerance = tolerance if x64 else 2e-5
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=tolerance, atol=tolerance)


def ragged(rows, fill=0.0):
    """Rows of unequal length as one array."""
    return np.array([list(row) + [fill] * (max(map(len, rows)) - len(row)) for row in rows], float)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_graphgpo_equals_public_code(shared_data, x64):
    """The public code keeps returns and penalty in float32."""
    for case in golden(shared_data, "graphgpo", x64)["cases"]:
        given = case["inputs"]
        total, rollout = np.array(given["episode_rewards"]), dense(given["traj_uid"])
        batch, place = batch_of_rows(
            uid=given["uid"],
            rollout=rollout,
            t=np.array(given["t"]),
            reward=given["rewards"],
            valid=given["is_action_valid"],
            anchor=given["anchor_obs"],
            following=given["next_obs"],
        )
        np.testing.assert_array_equal(batch.r_env.sum(axis=1)[rollout], total)
        for mode, expected in case["outputs"]["by_mode"].items():
            credit = make(
                "graphgpo",
                gamma=given["gamma"],
                normalize_distance=given["normalize_distance"],
                step_weight=given["step_advantage_w"],
                episode_weight=given["episode_advantage_w"],
                norm=mode.removesuffix("_norm"),
                invalid_penalty=given["invalid_action_penalty_coef"],
                eps=given["epsilon"],
            )
            with jax.enable_x64(x64):
                result = credit(pad(batch, 40, 12))
            close(np.asarray(result.returns)[place], case["outputs"]["step_rewards_after_penalty"], x64, 1e-6)
            close(np.asarray(result.advantage)[place], expected["advantage"], x64, 1e-6)
            step = given["step_advantage_w"] * np.asarray(result.step)[place]
            close(step, expected["step_only"], x64, 1e-6)


HCAPO = {
    "plain": {"smoothing": 1.0, "do_no_harm": False},
    "do_no_harm": {"smoothing": 1.0, "do_no_harm": True},
    "smooth": {"smoothing": 0.5, "do_no_harm": True},
}


@pytest.mark.parametrize("x64", PRECISIONS)
@pytest.mark.parametrize("variant", HCAPO)
def test_hcapo_equals_separate_loops(shared_data, variant, x64):
    for case in golden(shared_data, "hcapo", x64)["cases"]:
        given = case["inputs"]
        mask = np.array(given["action_mask"])
        mean = (np.array(given["hindsight_log_prob"]) * mask).sum(axis=1) / mask.sum(axis=1)
        rollout, t = dense(given["traj"]), np.array(given["t"])
        last = np.array([t[i] == t[rollout == rollout[i]].max() for i in range(len(t))])
        batch, place = batch_of_rows(
            uid=given["index"],
            rollout=rollout,
            t=t,
            reward=np.where(last, given["outcome"], 0.0),
            valid=np.ones(len(t), int),
            hindsight_logp=mean,
        )
        low, high = given["clip"]
        rules = {"gamma": given["gamma"], "omega": given["omega"], "temperature": given["t_temp"]}
        with jax.enable_x64(x64):
            result = make("hcapo", **rules, low=low, high=high, eps=given["epsilon"], **HCAPO[variant])(
                pad(batch, 40, 12)
            )
        expected = case["outputs"]["own_from_paper"][variant]
        close(np.asarray(result.returns)[place], expected["q"], x64)
        close(np.asarray(result.episode)[rollout], expected["macro"], x64)
        close(np.asarray(result.step)[place], expected["micro_masked"], x64)
        close(np.asarray(result.advantage)[place], expected["advantage"], x64)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_igpo_equals_public_code(shared_data, x64):
    """Compared with the version that marks turn ends and weights after the statistics. It takes a gain of exactly 0
    for no turn; where one occurs only the definition counts, which the loop oracle checks."""
    compared = 0
    for case in golden(shared_data, "igpo", x64)["cases"]:
        given = case["inputs"]
        rewards = [
            [row[end] for end in ends]
            for row, ends in zip(given["token_level_rewards"], given["turn_end"], strict=True)
        ]
        if any(0.0 in row[:-1] for row in rewards):
            continue
        length = np.array([len(row) for row in rewards])
        # Gains are differences of gold_logp, so their sums from the right are such a gold_logp.
        gold = ragged([[-9.0 - sum(row[k:-1]) for k in range(len(row))] for row in rewards])
        gold = np.pad(gold, ((0, 0), (0, 1)))
        final = ragged([[0.0] * (len(row) - 1) + [row[-1]] for row in rewards])
        batch = batch_of(r_env=final, length=length, group=dense(given["index"]), gold_logp=gold)
        credit = make(
            "igpo",
            normalise=given["mode"],
            norm="mean_std" if given["norm_adv_by_std"] else "mean",
            gamma=given["gamma"],
            final_weight=given["curriculum_f1_weight"],
            gain_weight=given["curriculum_ig_weight"],
            eps=given["epsilon"],
        )
        with jax.enable_x64(x64):
            result = credit(pad(batch, 12, 8))
        for r, expected in enumerate(case["outputs"]["dr_venus"]["per_turn"]):
            close(np.asarray(result.advantage)[r, : length[r]], expected, x64, 1e-7)
        compared += 1
    assert compared >= (6 if x64 else 2)


def test_information_gain_of_token_probabilities(shared_data):
    for case in golden(shared_data, "igpo")["information_gain_cases"]:
        mean = np.array([np.mean(state) for state in case["inputs"]["answer_token_log_probs"]])
        with jax.enable_x64(True):
            for gain, expected in case["outputs"].items():
                close(information_gain(mean, gain), expected, True)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_trace_equals_public_code(shared_data, x64):
    for case in golden(shared_data, "trace", x64)["cases"]:
        given = case["inputs"]
        turns = np.array([len(spans) for spans in given["turn_spans"]])
        gold = np.pad(ragged(given["prefix_avg_log_probs"]), ((0, 0), (0, 1)))
        steps = turns.max() + 1
        r_env = np.where(np.arange(steps) == turns[:, None], np.array(given["outcome"])[:, None], 0.0)
        batch = batch_of(
            r_env=r_env,
            length=turns + 1,
            group=dense(given["index"]),
            gold_logp=gold[:, : steps + 1],
            tool=(np.arange(steps) < turns[:, None]).astype(int),
        )
        credit = make(
            "trace",
            horizon=given["td_horizon"],
            gamma=given["td_gamma"],
            epsilon=given["gap_epsilon"],
            terminal=given["terminal_scale"],
            outcome_weight=given["outcome_weight"],
            turn_weight=given["turn_weight"],
            use_std=given["norm_by_std"],
        )
        with jax.enable_x64(x64):
            result = credit(pad(batch, 20, 8))
        expected = case["outputs"]
        for r, spans in enumerate(given["turn_spans"]):
            close(np.asarray(result.step)[r, : turns[r]], expected["turn_rewards"][r], x64)
            close(np.asarray(result.episode)[r], given["outcome_weight"] * expected["outcome_advantage"][r], x64)
            tokens = [first for first, _ in spans] + [np.flatnonzero(given["response_mask"][r])[-1]]
            close(np.asarray(result.advantage)[r, : turns[r] + 1], np.array(expected["advantages"][r])[tokens], x64)


def test_trace_reproduces_the_numbers_of_the_paper(shared_data):
    for case in golden(shared_data, "trace")["paper_appendix"]:
        with jax.enable_x64(True):
            value = state_values(np.array([case["before"], case["after"]]), case["epsilon"])
        assert value[1] - value[0] == pytest.approx(case["credit"], abs=1e-4)


def test_stepsearch_gain_equals_public_code(shared_data):
    for case in golden(shared_data, "stepsearch")["cases"]:
        given, expected = case["inputs"], case["outputs"]
        if not given["golden"]:
            continue
        best = np.array(
            [np.max(docs, axis=0) if len(docs) else np.zeros(len(given["golden"])) for docs in given["similarity"]]
        )
        with jax.enable_x64(True):
            gain = np.asarray(documents_gain(best))
        close(gain, expected["information_gain"], True)
        close(gain - np.array(expected["redundancy_penalty"]), expected["step_reward"], True)


def test_missing_golden_documents_count_for_nothing():
    similarity = np.array([[0.5, -1.0], [0.25, -1.0], [0.75, -1.0]])
    np.testing.assert_allclose(documents_gain(similarity), [0.5, 0, 0.25])
    assert not documents_gain(np.full((3, 2), -1.0)).any()

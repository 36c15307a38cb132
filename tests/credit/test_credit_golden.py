"""Every method against stored outputs of public code (trca: of separate scalar loops).

All cases of a method are padded to one shape: few compilations, and no padding may leak into a value.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from credit_batches import batch_of, batch_of_rows, dense, pad

from trca_jax.credit import make
from trca_jax.credit.returns import gae

PRECISIONS = [pytest.param(True, id="float64"), pytest.param(False, id="float32")]


def without_blow_up(expected):
    """0 where the public code divides by eps alone. With 'trajectory' that happens to a later step's penalty if the
    first steps of a task score alike; zero variance means 0 here."""
    return np.where(np.abs(expected) > 1e3, 0, expected)


def cases(shared_data, name):
    return json.loads((shared_data / "golden" / f"{name}.json").read_text())["cases"]


def close(actual, expected, x64, tolerance=1e-9):
    """To the tolerance in float64, to 2e-5 in float32."""
    assert actual.dtype == (jnp.float64 if x64 else jnp.float32)
    tolerance = tolerance if x64 else 2e-5
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_trca_equals_scalar_loops(shared_data, x64):
    fields = {
        "r_foundational": "foundational",
        "r_breakthrough": "breakthrough",
        "r_trca": "rubric",
        "completion_return": "returns",
        "advantage_episode": "episode",
        "advantage_step": "step",
        "advantage": "advantage",
    }
    for case in cases(shared_data, "trca"):
        given = case["inputs"]
        evidence, invalidity, execution = given["budget_evi_inval_exec"]
        credit = make(
            "trca",
            lam=given["lam"],
            gamma=given["gamma"],
            evidence=evidence,
            invalidity=invalidity,
            execution=execution,
            ddof=given["ddof"],
            eps=given["epsilon"],
            norm=given["norm_mode"],
        )
        batch = batch_of(
            r_env=given["r_env"],
            outcome=given["outcome"],
            length=given["length"],
            group=given["group"],
            judgement=given["O"],
            item_category=given["category"],
            item_mask=given["item_mask"],
            context=dense(np.array(given["context"]), np.array(given["group"])[:, None]),
        )
        with jax.enable_x64(x64):
            result = credit(pad(batch, 17, 8))
        for golden, field in fields.items():
            expected = np.array(case["outputs"][golden])
            close(np.asarray(getattr(result, field))[tuple(slice(n) for n in expected.shape)], expected, x64)


def outcome_case(case):
    """The batch of a grpo/rloo case, the penalty of its rows, their places, and the golden advantage of each row."""
    given = case["inputs"]
    if case["variant"] == "verl":  # one row a rollout
        scores = np.sum(given["token_level_rewards"], axis=1)
        expected = np.max(np.where(given["response_mask"], case["outputs"]["advantages"], -np.inf), axis=1)
        batch, place = batch_of_rows(
            uid=given["index"], rollout=np.arange(len(scores)), reward=scores, valid=np.ones(len(scores), int)
        )
        return batch, 0.0, place, expected
    # A row score is the rollout's total minus the penalty of a row that could not be parsed.
    scores, rollout = np.array(given["row_scores"]), dense(given["traj_uid"])
    total = np.array([scores[rollout == r].max() for r in rollout])
    first = np.unique(rollout, return_index=True)[1]
    batch, place = batch_of_rows(
        uid=given["uid"],
        rollout=rollout,
        reward=np.where(np.isin(np.arange(len(scores)), first), total, 0),
        valid=(scores == total).astype(int),
    )
    return batch, float((total - scores).max()), place, np.array(case["outputs"]["row_advantage"])


@pytest.mark.parametrize("x64", PRECISIONS)
@pytest.mark.parametrize("method", ["grpo", "rloo"])
def test_outcome_methods_equal_public_code(shared_data, method, x64):
    for case in cases(shared_data, method):
        if not x64 and case["name"] == "large_offset":
            continue  # scores of 1000 ± 0.001 do not survive float32
        given = case["inputs"]
        batch, penalty, place, expected = outcome_case(case)
        options = {"norm": "mean_std" if given["norm_adv_by_std"] else "mean"} if method == "grpo" else {}
        unit = "row" if given.get("compute_mean_std_cross_steps", True) else "trajectory"
        credit = make(method, stat_unit=unit, invalid_penalty=penalty, **options)
        with jax.enable_x64(x64):
            result = credit(pad(batch, 40, 12))
        close(np.asarray(result.advantage)[place], without_blow_up(expected), x64)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_gigpo_equals_public_code(shared_data, x64):
    for case in cases(shared_data, "gigpo"):
        given, golden = case["inputs"], case["outputs"]
        batch, place = batch_of_rows(
            uid=given["uid"],
            rollout=given["traj_uid"],
            t=np.array(given["t"]),
            reward=given["rewards"],
            valid=given["is_action_valid"],
            anchor=given["anchor_obs"],
        )
        settings = {
            "gamma": given["gamma"],
            "omega": given["step_advantage_w"],
            "norm": given["mode"].removesuffix("_norm"),
            "invalid_penalty": given["invalid_action_penalty_coef"],
            "eps": given["epsilon"],
        }
        with jax.enable_x64(x64):
            result = make("gigpo", **settings)(pad(batch, 40, 12))
            once = make("gigpo", **settings, stat_unit="trajectory")(pad(batch, 40, 12))
        returns, step, advantage = (np.asarray(x)[place] for x in (result.returns, result.step, result.advantage))
        float32_inside = 1e-6  # the public code casts the returns and the penalty
        close(returns, golden["step_rewards_after_penalty"], x64, float32_inside)
        close(step, golden["step_advantage"], x64, float32_inside)
        close(advantage - settings["omega"] * step, golden["episode_advantage"], x64, float32_inside)
        close(advantage, golden["advantage"], x64, float32_inside)
        if case["name"] != "interleaved_rows":  # there the first row in the file is not the first step
            episode = (np.asarray(once.advantage) - settings["omega"] * np.asarray(once.step))[place]
            close(episode, without_blow_up(golden["episode_advantage_traj_once"]), x64, float32_inside)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_gae_equals_public_code(shared_data, x64):
    """verl's cases, and verl-agent's where ignoring the mask makes no difference (γ = λ = 1, mask a prefix)."""
    compared = set()
    for case in cases(shared_data, "gae"):
        given = case["inputs"]
        prefix = (np.diff(given["response_mask"], axis=1) <= 0).all()
        padding = (np.array(given["response_mask"]) == 0).any()
        telescopes = given["gamma"] == given["lam"] == 1 and prefix
        if case["variant"] == "verl_agent" and padding and not telescopes:
            continue
        with jax.enable_x64(x64):
            advantages, returns = gae(
                np.array(given["token_level_rewards"]),
                np.array(given["values"]),
                np.array(given["response_mask"]),
                given["gamma"],
                given["lam"],
            )
        inside = np.array(given["response_mask"]) == 1
        close(np.asarray(advantages)[inside], np.array(case["outputs"]["advantages"])[inside], x64)
        close(np.asarray(returns)[inside], np.array(case["outputs"]["returns"])[inside], x64)
        compared.add((case["name"], case["variant"]))
    print(compared)
    assert len(compared) >= 8

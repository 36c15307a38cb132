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


def cases(shared_data, name, x64=True):
    """All cases; every fourth in float32, which checks the precision and not the options again."""
    return json.loads((shared_data / "golden" / f"{name}.json").read_text())["cases"][:: 1 if x64 else 4]


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
    for case in cases(shared_data, "trca", x64):
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
    return batch, round(float((total - scores).max()), 12), place, np.array(case["outputs"]["row_advantage"])


@pytest.mark.parametrize("x64", PRECISIONS)
@pytest.mark.parametrize("method", ["grpo", "rloo"])
def test_outcome_methods_equal_public_code(shared_data, method, x64):
    for case in cases(shared_data, method, x64):
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


def gigpo_case(case):
    """The padded batch of a case, the places of its rows and the settings."""
    given = case["inputs"]
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
    return pad(batch, 40, 12), place, settings


@pytest.mark.parametrize("x64", PRECISIONS)
def test_gigpo_equals_public_code(shared_data, x64):
    for case in cases(shared_data, "gigpo", x64):
        golden = case["outputs"]
        batch, place, settings = gigpo_case(case)
        with jax.enable_x64(x64):
            result = make("gigpo", **settings)(batch)
        returns, step, advantage = (np.asarray(x)[place] for x in (result.returns, result.step, result.advantage))
        float32_inside = 1e-6  # the public code casts the returns and the penalty
        close(returns, golden["step_rewards_after_penalty"], x64, float32_inside)
        close(step, golden["step_advantage"], x64, float32_inside)
        close(advantage - settings["omega"] * step, golden["episode_advantage"], x64, float32_inside)
        close(advantage, golden["advantage"], x64, float32_inside)


def test_gigpo_counts_a_rollout_once(shared_data):
    """stat_unit='trajectory': only the episode part changes, to the statistics of each rollout's first step."""
    for case in cases(shared_data, "gigpo"):
        if case["name"] not in ("ragged_two_groups", "all_fail_with_invalid", "uneven_groups"):
            continue  # a few: the statistic is GRPO's, compared above in full
        batch, place, settings = gigpo_case(case)
        with jax.enable_x64(True):
            result = make("gigpo", **settings | {"gamma": 0.95, "omega": 0.0}, stat_unit="trajectory")(batch)
        expected = without_blow_up(case["outputs"]["episode_advantage_traj_once"])
        close(np.asarray(result.advantage)[place], expected, True, 1e-6)


@pytest.mark.parametrize("x64", PRECISIONS)
def test_gae_equals_public_code(shared_data, x64):
    """verl jumps over masked tokens, as here. verl-agent ignores the mask, which differs unless the sums telescope
    (γ = λ = 1 and nothing masked inside the response) or nothing is masked at all."""
    compared = set()
    for case in cases(shared_data, "gae"):
        given = {name: np.array(value) for name, value in case["inputs"].items()}
        mask = given["response_mask"]
        telescopes = given["gamma"] == given["lam"] == 1 and (np.diff(mask, axis=1) <= 0).all()
        if case["variant"] == "verl_agent" and not telescopes and not mask.all():
            continue
        rows, tokens = mask.shape
        tokens_bl = [np.pad(given[k], ((0, 8 - rows), (0, 10 - tokens))) for k in ("token_level_rewards", "values")]
        with jax.enable_x64(x64):
            advantages, returns = jax.jit(gae)(
                *tokens_bl, np.pad(mask, ((0, 8 - rows), (0, 10 - tokens))), given["gamma"], given["lam"]
            )
        for actual, name in ((advantages, "advantages"), (returns, "returns")):
            expected = np.array(case["outputs"][name])
            close(np.asarray(actual)[:rows, :tokens][mask == 1], expected[mask == 1], x64)
        compared.add((case["name"], case["variant"]))
    assert compared == {
        ("default_gamma1_lam1", "verl_agent"),
        ("default_gamma1_lam1", "verl"),
        ("gamma.99_lam0", "verl"),
        ("zero_rewards", "verl_agent"),
        ("zero_rewards", "verl"),
        ("single_row", "verl_agent"),
        ("interior_observation_mask", "verl"),
        ("one_token_responses", "verl"),
    }

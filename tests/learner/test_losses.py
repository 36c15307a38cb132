"""Token losses against public implementations, and the directions in which they push."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from trca_jax.learner.losses import (
    AGGREGATIONS,
    counts,
    kl_estimate,
    policy_loss,
    sequence_ratio,
    token_ratio,
    token_weights,
    value_loss,
    weighted_sum,
)
from trca_jax.policy.head import token_logp


@pytest.fixture(scope="session")
def golden(shared_data):
    return json.loads((shared_data / "golden" / "losses.json").read_text())


def arrays(inputs, *names):
    return (np.array(inputs[name], np.float32) for name in names)


def mean(x, mask, mode):
    return weighted_sum(x, token_weights(mask, mode, *counts(mask)))


def counts_empty_rows(case):
    """verl-agent counts rows without tokens in a mean over rows; newer code and this library leave them out."""
    given = case["inputs"]
    mask = np.array(given.get("response_mask", given.get("loss_mask")))
    return (
        case.get("variant") == "verl_agent"
        and given["loss_agg_mode"].startswith("seq-mean-token-")
        and not given["loss_agg_mode"].endswith("norm")
        and (mask.sum(axis=1) == 0).any()
    )


def test_policy_loss_and_its_gradient_equal_the_public_code(golden):
    cases = [case for case in golden["cases"] if not counts_empty_rows(case)]
    assert len(cases) >= 17
    for case in cases:
        given, expected, name = case["inputs"], case["outputs"], f"{case['name']} {case['variant']}"
        new, old, advantage, mask = arrays(given, "log_prob", "old_log_prob", "advantages", "response_mask")
        mask = mask > 0

        def loss(new, old=old, advantage=advantage, mask=mask, given=given):
            loss, clipped = policy_loss(
                token_ratio(new, old),
                advantage,
                clip_low=given["clip_low"],
                clip_high=given["clip_high"],
                dual_clip=given["clip_ratio_c"],
            )
            return mean(loss, mask, given["loss_agg_mode"]), mean(clipped, mask, "token-mean")

        (value, clipped), gradient = jax.value_and_grad(loss, has_aux=True)(new)
        assert value == pytest.approx(expected["pg_loss"], rel=1e-5, abs=1e-6), name
        assert clipped == pytest.approx(expected["pg_clipfrac"], abs=1e-6), name
        np.testing.assert_allclose(gradient, expected["grad_log_prob"], rtol=2e-5, atol=1e-6, err_msg=name)


def test_gspo_and_its_gradient_equal_the_public_code(golden):
    for case in golden["gspo_cases"]:
        given, expected = case["inputs"], case["outputs"]
        new, old, advantage, mask = arrays(given, "log_prob", "old_log_prob", "advantages", "response_mask")
        mask = mask > 0

        def loss(new, old=old, advantage=advantage, mask=mask, given=given):
            loss, clipped = policy_loss(
                sequence_ratio(new, old, mask),
                advantage,
                clip_low=given["clip_low"],
                clip_high=given["clip_high"],
                dual_clip=None,
            )
            return mean(loss, mask, "seq-mean-token-mean"), mean(clipped, mask, "token-mean")

        (value, clipped), gradient = jax.value_and_grad(loss, has_aux=True)(new)
        assert value == pytest.approx(expected["pg_loss"], rel=1e-5, abs=1e-6)
        assert clipped == pytest.approx(expected["pg_clipfrac"], abs=1e-6)
        np.testing.assert_allclose(gradient, expected["grad_log_prob"], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("ours", "theirs"), [("k1", "kl"), ("abs", "abs"), ("k2", "mse"), ("k3", "low_var_kl")])
def test_kl_estimates_and_their_gradients_equal_the_public_code(golden, ours, theirs):
    cases = [case for case in golden["kl_cases"] if case["kind"] == theirs]
    assert len(cases) == 6
    for case in cases:
        new, reference = arrays(case["inputs"], "log_prob", "ref_log_prob")
        value, gradient = jax.value_and_grad(lambda new, ref=reference: kl_estimate(new, ref, ours).sum())(new)
        expected = np.array(case["outputs"]["kl"])
        np.testing.assert_allclose(
            kl_estimate(new, reference, ours), expected, rtol=2e-5, atol=4e-6, err_msg=case["name"]
        )
        assert value == pytest.approx(expected.sum(), rel=1e-5)
        np.testing.assert_allclose(
            gradient, case["outputs"]["grad_log_prob_of_sum"], rtol=2e-5, atol=1e-6, err_msg=case["name"]
        )


def test_aggregations_equal_the_public_code(golden):
    cases = [case for case in golden["agg_cases"] if case["outputs"]["finite"] and not counts_empty_rows(case)]
    assert len(cases) == 22
    for case in cases:
        loss, mask = arrays(case["inputs"], "loss_mat", "loss_mask")
        value = mean(loss, mask > 0, case["inputs"]["loss_agg_mode"])
        assert value == pytest.approx(case["outputs"]["loss"], rel=2e-6), case["name"]


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_parts_of_a_batch_add_up_to_the_whole(mode):
    rng = np.random.default_rng(0)
    x, mask = rng.standard_normal((6, 5)).astype(np.float32), rng.random((6, 5)) < 0.6
    mask[3] = False
    size = counts(mask)
    parts = [weighted_sum(x[i : i + 2], token_weights(mask[i : i + 2], mode, *size)) for i in (0, 2, 4)]
    assert sum(parts) == pytest.approx(float(mean(x, mask, mode)), rel=1e-5)


def test_value_loss_and_its_gradient_equal_the_public_code(golden):
    """The older code lacks the factor one half."""
    assert len(golden["value_cases"]) == 6
    for case in golden["value_cases"]:
        given, factor = case["inputs"], 2.0 if case["variant"] == "verl_agent" else 1.0
        new, returns, old, mask = arrays(given, "vpreds", "returns", "values", "response_mask")
        mask = mask > 0

        def loss(new, old=old, returns=returns, mask=mask, given=given, factor=factor):
            return factor * mean(value_loss(new, old, returns, given["cliprange_value"]), mask, "token-mean")

        value, gradient = jax.value_and_grad(loss)(new)
        assert value == pytest.approx(case["outputs"]["vf_loss"], rel=1e-5)
        np.testing.assert_allclose(gradient, case["outputs"]["grad_vpreds"], rtol=2e-5, atol=1e-6)


def test_entropy_equals_the_public_code(golden):
    for case in golden["entropy_cases"]:
        logits, mask = arrays(case["inputs"], "logits", "response_mask")
        # With the identity as embedding, hidden states are the logits themselves.
        _, entropy = token_logp(logits, np.eye(logits.shape[-1], dtype=np.float32), np.zeros(mask.shape, int))
        np.testing.assert_allclose(entropy, case["outputs"]["token_entropy"], rtol=1e-5, atol=1e-6)
        value = mean(entropy, mask > 0, case["inputs"]["loss_agg_mode"])
        assert value == pytest.approx(case["outputs"]["entropy_loss"], rel=1e-5)


CLIPS = {"clip_low": 0.2, "clip_high": 0.2, "dual_clip": 3.0}


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope", "clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, False),  # on policy: the gradient of -A log π
        (1.1, 2.0, -2.2, -2.2, False),
        (1.5, 2.0, -2.4, 0.0, True),  # far enough up: no more
        (0.5, 2.0, -1.0, -1.0, False),  # fallen, though good: full pull
        (1.0, -2.0, 2.0, 2.0, False),
        (0.5, -2.0, 1.6, 0.0, True),  # far enough down: no more
        (2.0, -2.0, 4.0, 4.0, False),
        (5.0, -2.0, 6.0, 0.0, False),  # the dual clip bounds the loss at c·|A|
        (1.3, 0.0, 0.0, 0.0, False),
    ],
)
def test_every_branch_by_hand(ratio, advantage, loss, slope, clipped):
    one = lambda new: policy_loss(token_ratio(new, -1.0), advantage, **CLIPS)  # noqa: E731
    (value, flag), gradient = jax.value_and_grad(one, has_aux=True)(-1.0 + np.log(ratio).astype(np.float32))
    assert value == pytest.approx(loss, rel=1e-6)
    assert gradient == pytest.approx(slope, rel=1e-6)
    assert bool(flag) == clipped


def test_extreme_ratios_stay_finite():
    new = jnp.array([0.0, -1e4, 0.0])
    old = jnp.array([-1e4, 0.0, -np.inf])
    loss, gradient = jax.value_and_grad(lambda n: policy_loss(token_ratio(n, old), jnp.ones(3), **CLIPS)[0].sum())(new)
    assert np.isfinite(loss) and np.isfinite(gradient).all()


def test_k3_is_zero_and_flat_at_the_reference_and_pulls_back_from_both_sides():
    slope = jax.grad(lambda new: kl_estimate(new, jnp.float32(-2.0), "k3"))
    assert kl_estimate(jnp.float32(-2.0), -2.0, "k3") == 0 and slope(-2.0) == 0
    # Descent raises a log-probability below the reference and lowers one above it.
    assert slope(-2.5) < 0 < slope(-1.5)
    assert slope(-2.5) == pytest.approx(1 - np.exp(0.5), rel=1e-5)
    # The estimate is unbiased: its mean over samples of π is KL(π ‖ reference).
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    mean = float(np.sum(p * np.asarray(kl_estimate(jnp.log(p), jnp.log(q), "k3"))))
    assert mean == pytest.approx(float(np.sum(p * np.log(p / q))), rel=1e-5)


def test_masked_sums_ignore_what_is_outside():
    x = jnp.array([[1.0, jnp.nan], [2.0, -jnp.inf]])
    assert mean(x, jnp.array([[True, False], [True, False]]), "token-mean") == 1.5
    assert mean(x, jnp.zeros((2, 2), bool), "seq-mean-token-mean") == 0.0


@pytest.mark.parametrize(("kind", "slope"), [("k1", 0.0), ("k2", None), ("k3", None)])
def test_what_the_gradient_of_a_kl_estimate_is_on_average(kind, slope):
    """Over samples of π: k1's gradient vanishes, k2's is that of KL(π ‖ ref), k3's that of KL(ref ‖ π)."""
    logits, reference = jnp.array([0.5, -0.2, 0.1]), jnp.log(jnp.array([0.2, 0.5, 0.3]))
    p = jax.nn.softmax(logits)
    sampled = jax.grad(lambda z: jnp.sum(p * kl_estimate(jax.nn.log_softmax(z), reference, kind)))(logits)

    def kl(a, b):
        return jnp.sum(jnp.exp(a) * (a - b))

    exact = {
        "k1": lambda z: 0.0 * z.sum(),
        "k2": lambda z: kl(jax.nn.log_softmax(z), reference),
        "k3": lambda z: kl(reference, jax.nn.log_softmax(z)),
    }[kind]
    np.testing.assert_allclose(sampled, jax.grad(exact)(logits), atol=1e-6)


def test_gspo_gives_every_token_of_a_row_the_same_ratio_and_keeps_rows_apart():
    new, old = jnp.array([[-1.0, -2.0, -9.0], [-1.0, -1.0, -1.0]]), jnp.array([[-1.5, -2.1, 0.0], [-1.0, -1.0, -1.0]])
    mask = jnp.array([[True, True, False], [True, True, True]])
    np.testing.assert_allclose(sequence_ratio(new, old, mask), [[0.3] * 3, [0.0] * 3], atol=1e-6)


@pytest.mark.parametrize(
    "wrong", [lambda: kl_estimate(0.0, 0.0, "k4"), lambda: token_weights(np.ones((1, 1)), "sum", 1, 1)]
)
def test_an_unknown_choice_is_named(wrong):
    with pytest.raises(ValueError, match="is unknown, expected one of"):
        wrong()

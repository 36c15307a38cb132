"""Token losses against public implementations, and the directions in which they push."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from trca_jax.learner.losses import kl_k3, masked_sum, policy_loss


@pytest.fixture(scope="session")
def golden(shared_data):
    return json.loads((shared_data / "golden" / "losses.json").read_text())


def arrays(inputs, *names):
    return (np.array(inputs[name], np.float32) for name in names)


def test_policy_loss_and_its_gradient_equal_the_public_code(golden):
    """All cases with one clip range, averaged over tokens; the aggregation over rows is the update's."""
    cases = [
        case
        for case in golden["cases"]
        if case["inputs"]["clip_low"] == case["inputs"]["clip_high"] and case["inputs"]["loss_agg_mode"] == "token-mean"
    ]
    assert len(cases) >= 9
    for case in cases:
        new, old, advantage, mask = arrays(case["inputs"], "log_prob", "old_log_prob", "advantages", "response_mask")
        options = {"clip": case["inputs"]["clip_low"], "dual_clip": case["inputs"]["clip_ratio_c"]}

        def mean(new, old=old, advantage=advantage, mask=mask, options=options):
            loss, clipped = policy_loss(new, old, advantage, **options)
            return masked_sum(loss, mask > 0) / mask.sum(), masked_sum(clipped, mask > 0) / mask.sum()

        (loss, clipped), gradient = jax.value_and_grad(mean, has_aux=True)(new)
        expected, name = case["outputs"], f"{case['name']} {case['variant']}"
        assert loss == pytest.approx(expected["pg_loss"], rel=1e-5, abs=1e-6), name
        assert clipped == pytest.approx(expected["pg_clipfrac"], abs=1e-6), name
        np.testing.assert_allclose(gradient, expected["grad_log_prob"], rtol=2e-5, atol=1e-6, err_msg=name)


def test_k3_and_its_gradient_equal_the_public_code(golden):
    cases = [case for case in golden["kl_cases"] if case["kind"] == "low_var_kl"]
    assert len(cases) == 6
    for case in cases:
        new, reference = arrays(case["inputs"], "log_prob", "ref_log_prob")
        value, gradient = jax.value_and_grad(lambda new, ref=reference: kl_k3(new, ref).sum())(new)
        expected = np.array(case["outputs"]["kl"])
        np.testing.assert_allclose(kl_k3(new, reference), expected, rtol=2e-5, atol=1e-6, err_msg=case["name"])
        assert value == pytest.approx(expected.sum(), rel=1e-5)
        np.testing.assert_allclose(
            gradient, case["outputs"]["grad_log_prob_of_sum"], rtol=2e-5, atol=1e-6, err_msg=case["name"]
        )


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
    one = lambda new: policy_loss(new, -1.0, advantage, clip=0.2, dual_clip=3.0)  # noqa: E731
    (value, flag), gradient = jax.value_and_grad(one, has_aux=True)(-1.0 + np.log(ratio).astype(np.float32))
    assert value == pytest.approx(loss, rel=1e-6)
    assert gradient == pytest.approx(slope, rel=1e-6)
    assert bool(flag) == clipped


def test_extreme_ratios_stay_finite():
    new = jnp.array([0.0, -1e4, 0.0])
    old = jnp.array([-1e4, 0.0, -np.inf])
    loss, gradient = jax.value_and_grad(lambda n: policy_loss(n, old, jnp.ones(3), clip=0.2, dual_clip=3.0)[0].sum())(
        new
    )
    assert np.isfinite(loss) and np.isfinite(gradient).all()


def test_k3_is_zero_and_flat_at_the_reference_and_pulls_back_from_both_sides():
    slope = jax.grad(lambda new: kl_k3(new, jnp.float32(-2.0)))
    assert kl_k3(jnp.float32(-2.0), -2.0) == 0 and slope(-2.0) == 0
    # Descent raises a log-probability below the reference and lowers one above it.
    assert slope(-2.5) < 0 < slope(-1.5)
    assert slope(-2.5) == pytest.approx(1 - np.exp(0.5), rel=1e-5)
    # The estimate is unbiased: its mean over samples of π is KL(π ‖ reference).
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.3, 0.3, 0.4])
    mean = float(np.sum(p * np.asarray(kl_k3(jnp.log(p), jnp.log(q)))))
    assert mean == pytest.approx(float(np.sum(p * np.log(p / q))), rel=1e-5)


def test_masked_sums_ignore_what_is_outside():
    x = jnp.array([[1.0, jnp.nan], [2.0, -jnp.inf]])
    assert masked_sum(x, jnp.array([[True, False], [True, False]])) == 3.0
    assert masked_sum(x, jnp.zeros((2, 2), bool)) == 0.0

"""The audit on arrays with known answers, and against loops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.rubrics import audit

# Four rollouts of up to three steps, three items; item 2 is bound in the first two rollouts only.
LENGTH = np.array([3, 2, 3, 0])
BOUND = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 0]], bool)
WON = np.array([True, False, False, True])
JUDGED = np.array([
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]],
    [[1, 1, 0], [0, 0, 0], [1, 1, 1]],  # its last row lies beyond the end
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]],  # of an item that is not bound
    [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
])  # fmt: skip
FIRED = audit.real_judgement(JUDGED, BOUND, LENGTH)


def test_what_counts_is_bound_and_before_the_end():
    assert FIRED.sum() == 6 and not FIRED[3].any() and not FIRED[1, 2].any() and not FIRED[2].any()


def test_rates_by_hand():
    steps, rollouts = audit.rates(FIRED, BOUND, LENGTH)
    np.testing.assert_allclose(steps, [3 / 8, 2 / 8, 1 / 5])
    np.testing.assert_allclose(rollouts, [2 / 3, 2 / 3, 1 / 2])
    nobody = audit.rates(FIRED[3:], BOUND[3:], LENGTH[3:])
    assert np.isnan(nobody).all()


def test_overlap_by_hand():
    """Items 0 and 1 fire together twice; 0 alone once: over 8 transitions n11 2, n10 1, n01 0, n00 5."""
    jaccard, phi = audit.overlap(FIRED, BOUND, LENGTH)
    assert jaccard[0, 1] == jaccard[1, 0] == pytest.approx(2 / 3)
    assert phi[0, 1] == pytest.approx((2 * 5 - 1 * 0) / math.sqrt(3 * 5 * 2 * 6))
    assert jaccard[0, 2] == 0 and phi[0, 2] == pytest.approx((0 - 3 * 1) / math.sqrt(3 * 2 * 1 * 4))  # of 5 transitions
    np.testing.assert_allclose(np.diag(jaccard), 1)
    np.testing.assert_allclose(np.diag(phi), 1)


def test_phi_of_constants_is_unknown_and_of_opposites_minus_one():
    assert np.isnan(audit.phi(3, 0, 4, 0)) and np.isnan(audit.phi(0, 0, 0, 0))
    assert audit.phi(0, 5, 2, 0) == pytest.approx(-1) and audit.phi(5, 0, 0, 2) == pytest.approx(1)
    assert audit.phi(10**6, 10, 10, 10**6) == pytest.approx(1 - 2e-5, abs=1e-9)  # no overflow, no lost digits


def test_success_of_rollouts_with_and_without_an_item():
    """Rollout 3 was won but not played."""
    if_fired, if_not, phi = audit.foretells(FIRED, BOUND, LENGTH, WON)
    assert if_fired.tolist() == [0.5, 0.5, 1.0] and if_not.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(phi, [(1 * 1 - 1 * 0) / math.sqrt(2 * 1 * 1 * 2)] * 2 + [1.0])
    never = audit.foretells(np.zeros_like(FIRED), BOUND, LENGTH, WON)
    assert np.isnan(never[0]).all() and np.isnan(never[2]).all()
    np.testing.assert_allclose(never[1], [1 / 3, 1 / 3, 1 / 2])


batches = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@settings(max_examples=40, deadline=None)
@given(batches)
def test_rates_and_overlap_equal_loops(rng):
    R, T, J = rng.integers(1, 6), rng.integers(1, 6), rng.integers(1, 5)
    judged, bound = rng.random((R, T, J)) < rng.random(J), rng.random((R, J)) < 0.7
    length = rng.integers(0, T + 1, R)
    fired = audit.real_judgement(judged, bound, length)
    steps, _ = audit.rates(fired, bound, length)
    jaccard, phi = audit.overlap(fired, bound, length)
    places = [(r, t) for r in range(R) for t in range(length[r])]
    for j in range(J):
        own = [judged[r, t, j] for r, t in places if bound[r, j]]
        np.testing.assert_allclose(steps[j], np.mean(own) if own else np.nan)
        for k in range(J):
            pairs = [(judged[r, t, j], judged[r, t, k]) for r, t in places if bound[r, j] and bound[r, k]]
            either = sum(a or b for a, b in pairs)
            np.testing.assert_allclose(jaccard[j, k], sum(a and b for a, b in pairs) / either if either else np.nan)
            one, two = np.array(pairs, float).reshape(-1, 2).T
            varied = len(pairs) and np.ptp(one) and np.ptp(two)
            np.testing.assert_allclose(phi[j, k], np.corrcoef(one, two)[0, 1] if varied else np.nan, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(batches)
def test_the_order_of_rollouts_changes_nothing(rng):
    R, T, J = 6, 4, 3
    judged, bound, length = rng.random((R, T, J)) < 0.3, rng.random((R, J)) < 0.7, rng.integers(0, T + 1, R)
    won, other = rng.random(R) < 0.5, rng.permutation(R)
    fired = audit.real_judgement(judged, bound, length)
    for one, two in zip(
        (*audit.overlap(fired, bound, length), *audit.foretells(fired, bound, length, won)),
        (
            *audit.overlap(fired[other], bound[other], length[other]),
            *audit.foretells(fired[other], bound[other], length[other], won[other]),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(one, two)


def test_new_values_of_a_fact():
    """Symbols: 1 is the usual one; the first step, repetitions, unknown values and the usual one are not new."""
    symbols = np.array([[1, 2, 2, 3, 0], [2, 1, 1, 1, 3]], np.int32)
    known = audit.is_known(symbols)
    assert known.sum() == 9
    assert audit.novel(symbols, known).tolist() == [[0, 1, 0, 1, 0], [0, 0, 0, 0, 1]]
    numbers = np.array([[0.0, 0.0, 2.5, np.nan, 2.5]], np.float32)
    assert audit.novel(numbers, audit.is_known(numbers)).tolist() == [[0, 0, 1, 0, 0]]
    flags = np.array([[0, 0, 1, -1, 1]], np.int8)
    assert audit.novel(flags, audit.is_known(flags)).tolist() == [[0, 0, 1, 0, 0]]
    sets = np.array([[[1, 0, 0], [1, 0, 0], [1, 5, 0], [0, 0, 0], [1, 5, 6], [1, 5, 0]]], np.int32)
    assert audit.is_known(sets).tolist() == [[1, 1, 1, 0, 1, 1]]
    assert audit.novel(sets, audit.is_known(sets)).tolist() == [[0, 0, 1, 0, 1, 0]]


def test_trend_by_hand():
    """0 1 0 1 0 1: r = Σ x·y / √(Σx²·Σy²) with x = −2.5 … 2.5; Σxy = 1.5, Σx² = 17.5, Σ(y−½)² = 1.5."""
    r = 1.5 / math.sqrt(17.5 * 1.5)
    t = r * math.sqrt(4 / (1 - r * r))
    values = np.array([[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0], [3, 3, 3, 3, 3, 3]]).T
    np.testing.assert_allclose(audit.trend(values), [t, -t, 0])
    assert audit.trend(np.arange(6.0)) > 100 and audit.trend(-np.arange(6.0)) < -100
    assert audit.trend(np.arange(3.0)) == 0


def test_paid_for_nothing_needs_a_rise_that_success_does_not_share():
    rng = np.random.default_rng(0)
    rise, flat = np.linspace(0.1, 0.9, 12), np.full(12, 0.3) + 0.02 * rng.standard_normal(12)
    items = np.stack([rise, flat, rise[::-1]], axis=1)
    assert audit.paid_for_nothing(items, flat).tolist() == [True, False, False]
    assert audit.paid_for_nothing(items, rise[::-1]).tolist() == [True, False, False]
    assert audit.paid_for_nothing(items, rise).tolist() == [False, False, False]


def test_blind_spots_are_clustered_by_template():
    fired = np.zeros((3, 3, 1), bool)
    fired[0, 0] = True  # a go that was noticed
    templates = [["go", "go", "take"], ["go", "look"], ["take"]]
    place = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1]], bool)  # marks beyond the ends do not count
    hand = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 0]], bool)
    spots = audit.blind_spots(fired, {"place": place, "hand": hand}, templates, np.array([True, False, False]))
    assert [(s.template, s.count, s.of, s.rollouts, s.won) for s in spots] == [
        ("go", 2, 3, 2, 0.5),
        ("take", 2, 2, 2, 0.5),
    ]
    assert spots[0].changes == {"place": 2, "hand": 1} and spots[1].changes == {"hand": 2}
    assert spots[0].example == (0, 1) and spots[1].example == (0, 2)
    fired[:] = True
    assert audit.blind_spots(fired, {"place": place}, templates, np.zeros(3, bool)) == []
    assert audit.blind_spots(~fired, {}, templates, np.zeros(3, bool)) == []

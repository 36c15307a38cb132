"""Success against rollouts: figures by hand, the bootstrap against a loop, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.evaluation.efficiency import (
    Curve,
    area,
    at,
    common_budget,
    curves,
    efficiency,
    interval,
    reached,
    resample,
)

X = np.array([0.0, 100.0, 200.0, 400.0])
Y = np.array([0.1, 0.3, 0.2, 0.6])


def row(method="trca", seed=0, rollouts=0, won="10", kind="all", setting="", repeats=1):
    names = {"method": method, "setting": setting, "task_types": "t", "seed": seed, "kind": kind}
    return names | {"rollouts": rollouts, "won": won, "repeats": repeats}


def test_success_lies_on_straight_lines_and_is_unknown_outside():
    assert [float(at(X, Y, b)) for b in (0, 50, 100, 300, 400)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.6])
    assert math.isnan(at(X, Y, 401)) and math.isnan(at(X + 1, Y, 0)) and math.isnan(at(X[:0], Y[:0], 0))
    np.testing.assert_allclose(at(X, np.stack([Y, 2 * Y]), 50), [0.2, 0.4])


def test_the_area_is_the_mean_height():
    assert float(area(X, Y, 200)) == pytest.approx((100 * 0.2 + 100 * 0.25) / 200)
    assert float(area(X, Y, 300)) == pytest.approx((100 * 0.2 + 100 * 0.25 + 100 * 0.3) / 300)
    assert float(area(X, Y, 0)) == pytest.approx(0.1) and math.isnan(area(X, Y, 500))
    np.testing.assert_allclose(area(X, np.stack([Y, Y + 1]), 400), float(area(X, Y, 400)) + np.array([0, 1]))


def test_where_a_success_is_first_reached():
    goals = np.array([float(reached(X, Y, goal)) for goal in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)])
    np.testing.assert_allclose(goals, [0, 0, 50, 100, 350, np.inf])
    np.testing.assert_allclose(reached(X, np.stack([Y, Y / 2, Y * 0]), 0.3), [100, 400, np.inf])
    assert math.isinf(reached(X[:0], Y[:0], 0.1))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1))
def test_the_place_that_is_reached_has_the_success_asked_for(success, goal):
    x, y = 10.0 * np.arange(len(success)), np.array(success)
    place = float(reached(x, y, goal))
    if y.max() < goal:
        assert math.isinf(place)
    else:
        assert at(x, y, place) == pytest.approx(max(goal, y[0]), abs=1e-6)
        assert not (y[x < place - 1e-6] >= goal).any()


def test_rows_become_curves_of_games():
    rows = [
        row(rollouts=0, won="1100"), row(rollouts=8, won="1-01"),
        row(rollouts=0, won="0000", seed=1), row(rollouts=8, won="1111", seed=1), row(rollouts=16, won="1111", seed=1),
        row("grpo", won="--11"), row(kind="other", won="1111"),
    ]  # fmt: skip
    for r in rows:
        r["repeats"] = 2
    found = curves(rows)
    assert list(found) == ["trca", "grpo"] and found["trca"].rollouts.tolist() == [0, 8]  # 16 is not every seed's
    np.testing.assert_array_equal(found["trca"].won, [[[1, 0], [1, 0.5]], [[0, 0], [1, 1]]])
    np.testing.assert_array_equal(found["grpo"].won, [[[np.nan, 1]]])
    np.testing.assert_allclose(found["trca"].success, [0.25, 0.875])
    assert common_budget(found) == 0 and common_budget({"trca": found["trca"]}) == 8
    assert curves(rows, "other")["trca"].won.tolist() == [[[1, 1]]]


def test_labels_tell_what_differs():
    both = [row(setting="a"), row("grpo", setting="b")]
    assert list(curves(both)) == ["trca · a", "grpo · b"]
    assert list(curves([row(setting="a"), row(setting="b")])) == ["a", "b"]
    assert list(curves([row(setting="a"), row("grpo", setting="a")])) == ["trca", "grpo"]
    types = [row() | {"task_types": name} for name in ("heat", "cool")]
    assert list(curves(types)) == ["heat", "cool"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([row(), row()], "two runs of 'trca' have seed 0"),
        ([row(), row(seed=1, won="100")], "runs of 'trca' were evaluated on different numbers of games"),
    ],
)
def test_rows_that_do_not_go_together_are_refused(rows, says):
    with pytest.raises(ValueError, match=says):
        curves(rows)


def test_seeds_without_a_common_evaluation_have_no_curve():
    assert curves([row(rollouts=0), row(rollouts=8, seed=1)]) == {}


def test_the_bootstrap_draws_seeds_and_games(rng_seed=3, draws=40):
    rng = np.random.default_rng(0)
    won = rng.random((3, 2, 5))
    won[1, :, 2] = np.nan
    got = resample(Curve(np.array([0.0, 1.0]), won), draws, rng_seed)
    rng = np.random.default_rng(rng_seed)
    games = rng.multinomial(5, [0.2] * 5, draws)
    seeds = rng.multinomial(3, [1 / 3] * 3, draws)
    for d in range(draws):
        for k in range(2):
            drawn = [
                won[s, k, g]
                for s in range(3) for g in range(5)
                for _ in range(seeds[d, s] * games[d, g]) if not np.isnan(won[s, k, g])
            ]  # fmt: skip
            assert got[d, k] == pytest.approx(np.mean(drawn))
    assert (got == resample(Curve(np.array([0.0, 1.0]), won), draws, rng_seed)).all()


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Success that depends on the seed and on the game: intervals over both cover, those over episodes alone do not."""
    rng, covered = np.random.default_rng(1), []
    for _ in range(120):
        chance = np.clip(0.5 + rng.normal(0, 0.1, (8, 1)) + rng.normal(0, 0.2, (1, 40)), 0, 1)
        won = (rng.random((8, 40)) < chance)[:, None].astype(float)
        low, high = interval(resample(Curve(np.zeros(1), won), 300, 0)[:, 0])
        covered.append(low <= 0.5 <= high)
    assert 0.88 <= np.mean(covered) <= 1.0
    assert high - low > 2 * 1.96 * math.sqrt(0.25 / 320)


def test_an_interval_may_end_nowhere():
    assert interval(np.array([1.0] * 90 + [np.inf] * 10)) == (1.0, math.inf)
    assert interval(np.full(9, np.inf)) == (math.inf, math.inf)
    assert all(map(math.isnan, interval(np.array([1.0, np.nan]))))


def test_all_figures_at_once():
    rows = [row(m, s, r, won) for m, best in (("trca", "1110"), ("grpo", "1000")) for s in (0, 1)
            for r, won in ((0, "0000"), (128, "1000"), (256, best))]  # fmt: skip
    found = curves(rows)
    figures = efficiency(found, [64, 256, 6400], 0.5)
    assert [f[0] for f in figures["trca"]["success"][:2]] == pytest.approx([0.125, 0.75])
    assert math.isnan(figures["trca"]["success"][2][0])
    assert figures["trca"]["area"][0] == pytest.approx((0.125 + 0.5) / 2)
    assert figures["trca"]["reached"][0] == pytest.approx(128 + 64) and math.isinf(figures["grpo"]["reached"][0])
    assert figures["trca"]["points"][0] == (0, 0, 0) and figures["grpo"]["points"][2][0] == 0.25
    for name in ("area", "reached"):
        value, low, high = figures["trca"][name]
        assert low <= value <= high
    assert figures["grpo"]["area"] == efficiency(found, [], 0.5)["grpo"]["area"]  # drawn with a fixed seed

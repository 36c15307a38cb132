"""Sample efficiency: held-out success against sampled rollouts, at equal budgets, with intervals by the bootstrap.

A budget counts complete rollouts. Between two evaluations success lies on a straight line; nothing is said beyond the
last one.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from trca_jax.evaluation.results import Row, labels

BUDGETS = (1920, 3840, 6400)  # of the published study: 15, 30 and 50 iterations of 128 rollouts


@dataclass(frozen=True)
class Curve:
    """The evaluations of one method or setting. rollouts: sampled before each, ascending. won: the share of a game's
    episodes that were won, for each seed, evaluation and game; NaN where none was played."""

    rollouts: Float[np.ndarray, "K"]
    won: Float[np.ndarray, "S K G"]

    @property
    def success(self) -> Float[np.ndarray, "K"]:
        """Mean over seeds and games."""
        return np.nanmean(self.won, axis=(0, 2))


def curves(rows: Sequence[Row], kind: str = "all") -> dict[str, Curve]:
    """The curve of every method or setting (named by `labels`) on tasks of a kind. Evaluations that not every seed has
    are left out, and labels without any. Raises ValueError if a label has a seed twice, or seeds that were evaluated on
    different numbers of games."""
    name, found = labels(rows), defaultdict(dict)
    for row in rows:
        if row["kind"] == kind:
            place = (row["seed"], row["rollouts"])
            if place in (own := found[name(row)]):
                raise ValueError(
                    f"two runs of {name(row)!r} have seed {row['seed']}; compare runs that differ in method, setting "
                    "or seed alone"
                )
            own[place] = _games(row)
    out = {}
    for label, own in found.items():
        seeds = sorted({seed for seed, _ in own})
        places = [p for p in sorted({p for _, p in own}) if all((seed, p) in own for seed in seeds)]
        if len({len(own[seed, p]) for seed in seeds for p in places}) > 1:
            raise ValueError(f"runs of {label!r} were evaluated on different numbers of games; evaluate them alike")
        if places:
            won = [[own[seed, p] for p in places] for seed in seeds]
            out[label] = Curve(np.array(places, float), np.array(won, float))
    return out


def _games(row: Row) -> Float[np.ndarray, "G"]:
    """The share of each game's episodes that were won."""
    won = np.array([{"1": 1.0, "0": 0.0}.get(letter, np.nan) for letter in row["won"]])
    won = won.reshape(-1, row["repeats"])
    played = np.isfinite(won).sum(axis=1)
    return np.where(played, np.nansum(won, axis=1) / np.maximum(played, 1), np.nan)


def resample(curve: Curve, draws: int, seed: int) -> Float[np.ndarray, "D K"]:
    """Mean success of `draws` samples of as many seeds and as many games, both drawn with replacement.

    A game keeps its draw over all evaluations, so what is computed from a whole curve has the interval of a curve; and
    games are drawn before seeds, so curves over the same games see the same draws.
    success_dk = Σ_sg v_ds·w_dg·won_skg / Σ_sg v_ds·w_dg, v and w multinomial; NaN where nothing drawn was played.
    Source: the crossed ("pigeonhole") bootstrap, Owen 2007.
    """
    rng, (seeds, _, games) = np.random.default_rng(seed), curve.won.shape
    weight_dg = rng.multinomial(games, np.full(games, 1 / games), draws)
    weight_ds = rng.multinomial(seeds, np.full(seeds, 1 / seeds), draws)
    real = np.isfinite(curve.won)
    mean = lambda values: np.einsum("ds,dsk->dk", weight_ds, np.einsum("dg,skg->dsk", weight_dg, values))  # noqa: E731
    with np.errstate(invalid="ignore"):
        return mean(np.where(real, curve.won, 0.0)) / mean(real.astype(float))


def at(
    rollouts: Float[np.ndarray, "K"], success: Float[np.ndarray, "... K"], budget: float
) -> Float[np.ndarray, "..."]:
    """Success after `budget` rollouts; NaN before the first and beyond the last evaluation."""
    if not rollouts.size or not rollouts[0] <= budget <= rollouts[-1]:
        return np.full(success.shape[:-1], np.nan)
    last = int(np.searchsorted(rollouts, budget))
    if rollouts[last] == budget:
        return success[..., last]
    part = (budget - rollouts[last - 1]) / (rollouts[last] - rollouts[last - 1])
    return success[..., last - 1] + part * (success[..., last] - success[..., last - 1])


def area(
    rollouts: Float[np.ndarray, "K"], success: Float[np.ndarray, "... K"], budget: float
) -> Float[np.ndarray, "..."]:
    """The area under the curve from the first evaluation to `budget`, over its width: mean success on the way; NaN for
    a budget beyond the last evaluation."""
    end = at(rollouts, success, budget)
    inside = rollouts < budget
    if np.isnan(end).all() or not inside.any():
        return end
    x = np.append(rollouts[inside], budget)
    y = np.concatenate([success[..., inside], end[..., None]], axis=-1)
    return np.trapezoid(y, x, axis=-1) / (x[-1] - x[0])


def reached(
    rollouts: Float[np.ndarray, "K"], success: Float[np.ndarray, "... K"], goal: float
) -> Float[np.ndarray, "..."]:
    """Rollouts after which success first is `goal`; inf if it never is."""
    if not rollouts.size:
        return np.full(success.shape[:-1], np.inf)
    above = success >= goal
    last = above.argmax(axis=-1)
    before = np.maximum(last - 1, 0)
    take = lambda places: np.take_along_axis(success, places[..., None], -1)[..., 0]  # noqa: E731
    rise = take(last) - take(before)
    part = np.where(rise > 0, (goal - take(before)) / np.where(rise > 0, rise, 1.0), 0.0)
    found = rollouts[before] + part * (rollouts[last] - rollouts[before])
    return np.where(above.any(axis=-1), found, np.inf)


def interval(samples: Float[np.ndarray, "D"]) -> tuple[float, float]:
    """The central 95 % of the samples; inf is more than any number. NaN, NaN if any of them is NaN."""
    if np.isnan(samples).any():
        return math.nan, math.nan
    return tuple(float(x) for x in np.quantile(samples, (0.025, 0.975), method="inverted_cdf"))


def common_budget(found: Mapping[str, Curve]) -> float:
    """The largest number of rollouts up to which all curves go; 0 if one has no evaluation."""
    return min((float(c.rollouts[-1]) if c.rollouts.size else 0.0 for c in found.values()), default=0.0)


def efficiency(
    found: Mapping[str, Curve], budgets: Sequence[float], goal: float, *, draws: int = 2000, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """What the curves say of each label, every figure a (value, low, high) with its 95 % interval.

    points: of every evaluation. success: after each budget, NaN beyond the last evaluation. area: mean success up to
    the budget that all curves reach. reached: rollouts until success is `goal`, inf if never.
    """
    shared, out = common_budget(found), {}
    for label, curve in found.items():
        x, mean = curve.rollouts, curve.success
        figure = functools.partial(_figure, mean, resample(curve, draws, seed))
        out[label] = {
            "points": [figure(at, x, place) for place in x],
            "success": [figure(at, x, budget) for budget in budgets],
            "area": figure(area, x, shared),
            "reached": figure(reached, x, goal),
        }
    return out


def _figure(mean, samples, of, rollouts, argument: float) -> tuple[float, float, float]:
    return float(of(rollouts, mean, argument)), *interval(of(rollouts, samples, argument))

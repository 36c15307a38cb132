"""What the best purchase of a goal's own product is worth: below 1 where WebShop's option match fails on itself.

Source: spec/webshop.md section 5. 458 of the 6,910 goals of the small set cannot reach 1; results are read with that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from trca_jax.envs.webshop.goals import Goal
from trca_jax.envs.webshop.reward import hit_options, reward, wanted_options


def best_total(goal: Goal, price: float, option_match: str = "original") -> float:
    """The highest reward that any choice of options of the goal's own product gives. price: its drawn price."""

    def total(options: Mapping[str, str]) -> float:
        return reward(goal.product, goal, price, options, option_match=option_match).total

    if isinstance(goal.options, Mapping) and (own := total(goal.options)) == 1:
        return own
    wanted = wanted_options(goal, option_match)
    choices = []
    for name, values in goal.product.options.items():
        hits = {tuple(hit_options((value,), wanted, option_match)): (name, value) for value in values}
        choices.append(list(hits.values()) or [None])
    purchases = (dict(pair for pair in chosen if pair) for chosen in itertools.product(*choices))
    return max(map(total, purchases))


def unreachable(goals: Iterable[tuple[Goal, float]], option_match: str = "original") -> list[int]:
    """Places of the goals, given with the drawn price of their product, that no purchase of it rewards with 1."""
    return [i for i, (goal, price) in enumerate(goals) if best_total(goal, price, option_match) < 1]

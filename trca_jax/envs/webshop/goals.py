"""Shopping goals: made from a catalogue as WebShop and verl-agent make them, drawn prices and order included.

Source: spec/webshop.md section 3.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trca_jax.envs.webshop.catalog import Product

COMPATS = ("webshop", "verl-agent")
KINDS = ("synthetic", "human")
NO_BOUND = 1_000_000  # dollars; WebShop's way to say that the price does not matter
_SHUFFLE = 233  # WebShop's own seed of the order
_BOUNDS = tuple(10.0 * i for i in range(1, 100))


@dataclass(frozen=True)
class Goal:
    """What the agent is told to buy, and what only the reward knows.

    text: the instruction. product: the one the goal was made from. options: name to value of a synthetic goal, or the
    values of a human one. price_upper: dollars, the bound that the text names. weight: WebShop's sampling weight.
    """

    text: str
    product: Product
    attributes: tuple[str, ...]
    options: Mapping[str, str] | tuple[str, ...]
    price_upper: float
    weight: float = 1  # an integer in human goals, which shows in the sha1

    @property
    def name(self) -> str:
        """For messages."""
        return f"goal {self.text!r} (product {self.product.asin})"

    def record(self) -> dict[str, Any]:
        """The goal as WebShop keeps it."""
        product = self.product
        return {
            "asin": product.asin,
            "category": product.category,
            "query": product.query,
            "name": product.title,
            "product_category": product.product_category,
            "instruction_text": self.text,
            "attributes": list(self.attributes),
            "price_upper": self.price_upper,
            "goal_options": dict(self.options) if isinstance(self.options, Mapping) else list(self.options),
            "weight": self.weight,
        }


@dataclass(frozen=True)
class GoalList:
    """All goals of one catalogue in the order of one seed. prices: dollars of each product, by asin; of a product with
    a price range, one draw that no page shows. sha1: of the records, equal to that of WebShop's own list."""

    goals: tuple[Goal, ...]
    prices: Mapping[str, float]
    sha1: str

    def __len__(self) -> int:
        return len(self.goals)


def make_goals(
    products: Sequence[Product], *, kind: str = "synthetic", compat: str = "webshop", seed: int = 0
) -> GoalList:
    """The goals of a catalogue.

    kind: 'synthetic' makes one goal for each combination of option values of the products with an instruction; 'human'
    takes people's annotations, those without attributes left out. compat: 'webshop' shuffles with its own seed, so that
    `seed` moves prices and bounds only; 'verl-agent' shuffles with `seed` too.
    Raises ValueError for unknown names and for a catalogue without goals.
    """
    if kind not in KINDS or compat not in COMPATS:
        raise ValueError(
            f"goals {kind!r} with compat {compat!r} are unknown; expected one of {', '.join(KINDS)} and one of "
            f"{', '.join(COMPATS)}"
        )
    rng = random.Random(seed)
    prices = draw_prices(products, rng)
    make = _synthetic if kind == "synthetic" else _human
    goals = [goal for product in products for goal in make(product, prices[product.asin], rng)]
    if not goals:
        raise ValueError(f"the catalogue of {len(products)} products gives no {kind} goal; expected instructions in it")
    if kind == "synthetic":
        goals = _weighted(goals)
    random.Random(_SHUFFLE if compat == "webshop" else seed).shuffle(goals)
    records = json.dumps([goal.record() for goal in goals], sort_keys=True)
    return GoalList(tuple(goals), prices, hashlib.sha1(records.encode()).hexdigest())


def draw_prices(products: Sequence[Product], rng: random.Random) -> dict[str, float]:
    """The price of each product by asin: a product with a range gets one uniform draw."""
    return {
        product.asin: product.price_range[0] if len(product.price_range) == 1 else rng.uniform(*product.price_range)
        for product in products
    }


def _bound(price: float, rng: random.Random) -> tuple[float, str]:
    """The price bound of a goal product, and the words that name it."""
    above = [bound for bound in _BOUNDS if bound > price][:4]
    if len(above) < 2:
        return NO_BOUND, ""
    bound = max(rng.sample(above, 2))
    return bound, f", and price lower than {bound:.2f} dollars"


def _synthetic(product: Product, price: float, rng: random.Random) -> list[Goal]:
    if product.instruction is None:
        return []
    if not product.instruction_attributes:
        raise ValueError(
            f"product {product.asin}: its instruction {product.instruction!r} names no attributes; a goal needs at "
            "least one, add instruction_attributes or drop the instruction"
        )
    bound, price_words = _bound(price, rng)
    names = sorted(product.options)
    goals = []
    for values in itertools.product(*(product.options[name] for name in names)):
        options = dict(zip(names, values, strict=True))
        wish = ", and ".join(f"{name}: {value}" for name, value in options.items())
        text = f"{product.instruction}{' with ' + wish if wish else ''}{price_words}"
        goals.append(Goal(text, product, product.instruction_attributes, options, bound))
    return goals


def _human(product: Product, price: float, rng: random.Random) -> list[Goal]:
    goals = []
    for note in product.annotations:
        if note.attributes:
            bound, price_words = _bound(price, rng)
            text = note.instruction.strip(".") + price_words
            goals.append(Goal(text, product, note.attributes, note.options, bound))
    return goals


def _weighted(goals: Sequence[Goal]) -> list[Goal]:
    """Goals of rare attributes weigh more: the mean over a goal's attributes of 1/(goals that ask for it)."""
    asked = Counter(attribute for goal in goals for attribute in goal.attributes)
    shares = {attribute: 1.0 / count for attribute, count in asked.items()}
    weighted = []
    for goal in goals:
        weight = sum(shares[attribute] for attribute in goal.attributes) / len(goal.attributes)
        weighted.append(Goal(goal.text, goal.product, goal.attributes, goal.options, goal.price_upper, weight))
    return weighted

"""What a purchase is worth: WebShop's reward, flaws included.

Source: spec/webshop.md section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rapidfuzz.fuzz import token_set_ratio
from rapidfuzz.utils import default_process

from trca_jax.envs.webshop.catalog import Product
from trca_jax.envs.webshop.goals import Goal

OPTION_MATCHES = ("original", "fixed")
_ENOUGH = 85  # a ratio above this is a match
_LATIN_1 = dict.fromkeys(range(128, 256))
# The first of these that an option value contains stands for the whole value.
COLOR_WORDS = tuple(
    (
        "alabaster|apricot|aqua|ash|asphalt|azure|banana|beige|black|blue|blush|bordeaux|bronze|brown|burgundy|camel|"
        "camo|caramel|champagne|charcoal|cheetah|chestnut|chocolate|christmas|coffee|cognac|copper|coral|cranberry|"
        "cream|crystal|dark|denim|eggplant|elephant|espresso|fuchsia|gold|granite|grape|graphite|grass|gray|green|"
        "grey|heather|indigo|ivory|ivy|khaki|lavender|lemon|leopard|light|lilac|lime|magenta|maroon|mauve|merlot|"
        "midnight|mint|mocha|multicolor|mushroom|mustard|natural|navy|nude|olive|orange|peach|pewter|pink|plum|"
        "purple|rainbow|red|rose|royal|rust|sand|sapphire|seashell|silver|skull|slate|steel|stone|stonewash|"
        "sunflower|tan|taupe|teal|tiger|turquoise|violet|walnut|wheat|white|wine|yellow"
    ).split("|")
)


@dataclass(frozen=True)
class Reward:
    """total = type·(hits)/(attributes + options + 1), in 0..1; success where it is 1. The rest tells how it came about.

    attributes, options: share of the goal's that are met; options is None for a goal without any. within_price: the
    drawn price is at most the goal's bound. title_score: share of the goal title's nouns that the bought title has.
    """

    total: float
    type: float
    attributes: float
    options: float | None
    within_price: bool
    same_query: bool
    same_category: bool
    title_score: float

    @property
    def success(self) -> bool:
        return self.total == 1.0


def reward(
    product: Product, goal: Goal, price: float, options: Mapping[str, str], *, option_match: str = "original"
) -> Reward:
    """The reward of buying `product` with the chosen `options` (name to value) for `goal`.

    option_match: 'original' compares a synthetic goal's options as WebShop does, by which some values never match
    themselves; 'fixed' compares values with values. Raises ValueError naming a goal without attributes or with a price
    bound of 0, which WebShop itself cannot reward, and titles without a list of nouns.
    """
    if option_match not in OPTION_MATCHES:
        raise ValueError(f"option_match {option_match!r} is unknown, expected one of {', '.join(OPTION_MATCHES)}")
    check_goal(goal)
    kind, same_query, same_category, title_score = _kind(product, goal)
    attribute_hits = sum(has_attribute(product, attribute) for attribute in goal.attributes)
    option_hits = sum(hit_options(tuple(options.values()), wanted_options(goal, option_match), option_match))
    within_price = price <= goal.price_upper
    n = len(goal.attributes) + len(goal.options) + 1
    return Reward(
        total=(attribute_hits + option_hits + within_price) / n * kind,
        type=kind,
        attributes=attribute_hits / len(goal.attributes),
        options=option_hits / len(goal.options) if goal.options else None,
        within_price=within_price,
        same_query=same_query,
        same_category=same_category,
        title_score=title_score,
    )


def check_goal(goal: Goal) -> None:
    """Raises ValueError for a goal that no purchase can be rewarded for."""
    if not goal.attributes:
        raise ValueError(f"{goal.name}: it asks for no attribute, and its reward is a share of them; leave it out")
    if not goal.price_upper > 0:
        raise ValueError(f"{goal.name}: its price bound is {goal.price_upper}; expected dollars above 0")


def breakdown(result: Reward, goal: Goal) -> dict[str, Any]:
    """The parts under WebShop's own names."""
    n = len(goal.attributes) + len(goal.options) + 1
    parts = {
        "r_type": result.type,
        "r_att": result.attributes,
        "w_att": len(goal.attributes) / n,
        "query_match": result.same_query,
        "category_match": result.same_category,
        "title_score": result.title_score,
    }
    if result.options is not None:
        parts |= {"r_option": result.options, "w_option": len(goal.options) / n}
    return parts | {"r_price": result.within_price, "w_price": 1 / n}


def _kind(product: Product, goal: Goal) -> tuple[float, bool, bool, float]:
    wanted = _nouns(goal.product)
    title_score = len(set(_nouns(product)) & set(wanted)) / len(wanted) if wanted else 0.2
    same_query = product.query == goal.product.query
    same_category = len(_steps(product) & _steps(goal.product)) >= 2
    kind = 1.0 if same_query or same_category or title_score > 0.2 else 0.5
    if title_score < 0.1:
        kind = 0.1 if title_score else 0.0
    return kind, same_query, same_category, title_score


def _nouns(product: Product) -> tuple[str, ...]:
    if product.nouns is None:
        raise ValueError(
            f"product {product.asin}: no list of the nouns of its title {product.title!r}; add it to title_nouns.json "
            "beside the catalogue (tokens that a tagger calls NOUN or PROPN, in lower case, in order)"
        )
    return product.nouns


def _steps(product: Product) -> set[str]:
    return {step.strip() for step in product.product_category.split("›")}


@lru_cache(maxsize=1 << 16)
def ratio(first: str, second: str) -> int:
    """How alike two texts are as sets of words, 0..100. Only letters and digits count, and no letter of Latin-1's upper
    half.

    >>> ratio("x-large", "large"), ratio("machine washable", "machine wash")
    (100, 86)
    """
    first, second = (default_process(text.translate(_LATIN_1)) for text in (first, second))
    return round(token_set_ratio(first, second))


def has_attribute(product: Product, attribute: str) -> bool:
    """Whether a goal's attribute is one of the product's, or stands in its title, bullets or description."""
    if any(ratio(own, attribute) > _ENOUGH for own in product.attributes):
        return True
    texts = (product.title, " ".join(product.bullets), product.description)
    return any(attribute in text.lower() for text in texts)


def wanted_options(goal: Goal, option_match: str = "original") -> tuple[str, ...]:
    """The texts that bought values are compared with.

    WebShop hands over a synthetic goal's options as (name, value) pairs: one is cut to a colour word only if its name
    or value is that word, and else compared as the text "('name', 'value')".
    """
    if isinstance(goal.options, Mapping):
        if option_match == "original":
            return tuple(
                next((word for word in COLOR_WORDS if word in pair), str(pair)) for pair in goal.options.items()
            )
        return tuple(map(color_word, goal.options.values()))
    return tuple(map(color_word, goal.options))


@lru_cache(maxsize=1 << 14)
def color_word(value: str) -> str:
    """The first colour word that the value contains, or the value itself.

    >>> color_word("navy blue"), color_word("rectangular"), color_word("large")
    ('blue', 'tan', 'large')
    """
    return next((word for word in COLOR_WORDS if word in value), value)


def hit_options(bought: Sequence[str], wanted: Iterable[str], option_match: str = "original") -> list[bool]:
    """Whether each wanted text is met by some bought value, whatever the options' names. Two equal texts without a
    letter that `ratio` counts, such as '½', are alike only where it is 'fixed'."""
    cut = [color_word(value) for value in bought]
    equal = option_match == "fixed"
    return [any((equal and value == text) or ratio(value, text) > _ENOUGH for value in cut) for text in wanted]

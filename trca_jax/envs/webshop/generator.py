"""Makes a catalogue of about a thousand products in WebShop's own file formats, the same on every machine.

For training, tests and a first run without a download; not for published numbers. Of `random` only `random()` is used,
whose sequence Python keeps. The catalogue holds every oddity of the real one: empty titles, descriptions and bullets,
prices that range or are missing, products above all price bounds, values with quotes, slashes and letters outside
ASCII, fifty values of one option, and rows that WebShop's loader throws away.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

from trca_jax.envs.webshop.catalog import ATTRIBUTES, HUMAN, ITEMS, TITLE_NOUNS
from trca_jax.envs.webshop.lexicon import BRANDS, LINES, NOUNS, Line

VERSION = 1
PER_LINE = 48
_FILLER = (
    "Made for every day and checked by hand before it leaves the workshop.",
    "A friendly gift for family and friends, packed in a plain box.",
    "Ask us anything, we answer within a day.",
    "Designed with care, tested for years.",
    "Please check the measures before you order.",
)


@cache
def files() -> dict[str, Any]:
    """The catalogue as the contents of WebShop's files: items, attributes with instructions, people's annotations, and
    the nouns of each title. Nobody may change what is returned."""
    rng = random.Random(f"webshop catalogue {VERSION}")
    made = [_product(line, number, rng) for line in LINES for number in range(PER_LINE)]
    made += [_case_study(), *_odd(rng)]
    order = sorted(range(len(made)), key=lambda _: rng.random())
    items, attributes, human, nouns = [], {}, {}, {}
    for index in order:
        item, own = made[index]
        items.append(item)
        attributes[item["asin"]] = own
        nouns[item["asin"]] = title_nouns(item["name"])
        if "instruction" in own and rng.random() < 0.25:
            human[item["asin"]] = [_annotation(item, own)]
    items += [{**items[0]}, {**items[1], "asin": "nan"}, {**items[2], "asin": "B0TOOLONG12"}]
    return {ITEMS: items, ATTRIBUTES: attributes, HUMAN: human, TITLE_NOUNS: nouns}


def title_nouns(title: str) -> list[str]:
    """The nouns of a generated title, in order, with repeats."""
    return [word for word in re.findall(r"[^\W_]+(?:'s)?", title.lower()) if word in NOUNS]


def _product(line: Line, number: int, rng: random.Random) -> tuple[dict, dict]:
    def draw(pool):
        return pool[int(rng.random() * len(pool))]

    def some(pool, least, most):
        count = least + int(rng.random() * (most - least + 1))
        return sorted(sorted(pool, key=lambda _: rng.random())[:count], key=pool.index)

    head, style, brand = draw(line.heads), draw(line.styles), draw(BRANDS)
    own = some(line.attributes, 2, 5)
    shown = [phrase.title() for phrase in some(own, 1, 2)]
    who = {"men's": "Men's ", "women's": "Women's "}.get(line.query.split()[0], "")
    title = f"{brand} {who}{style.title()} {head.title()}, {', '.join(shown)}"
    options = {}
    for name, values in line.options.items():
        if rng.random() < 0.9:
            options[name.title()] = [{"value": value, "image": None} for value in some(values, 2, 4)]
    low, high = line.prices
    price = low + (high - low) * rng.random() ** 2
    pricing = f"${price:,.2f}"
    if rng.random() < 0.1:
        pricing += f" - ${price * (1.2 + 0.5 * rng.random()):,.2f}"
    bullets = [f"{phrase.capitalize()}: {draw(_FILLER)} " for phrase in own]
    item = {
        "asin": _asin(rng),
        "name": title,
        "category": line.category,
        "query": line.query,
        "product_category": line.path,
        "full_description": "" if rng.random() < 0.3 else f"{style.capitalize()} {head} by {brand}. {draw(_FILLER)}",
        "small_description": bullets,
        "pricing": pricing,
        "customization_options": options or "",
    }
    facts: dict[str, Any] = {"attributes": own}
    if number % 2 == 0:
        facts |= _instruction(line.query, own[: 2 + number // 2 % 2], rng)
    return item, facts


def _instruction(query: str, asked: list[str], rng: random.Random) -> dict[str, Any]:
    """A text that names the kind and the attributes; WebShop puts the last one behind 'with' or 'for'."""
    *front, last = asked
    joined = f"{', '.join(front)} {query}" if front else query
    ending = " for " if last.endswith((" room", " skin", " hair")) else " with "
    return {"instruction": f"Find me {joined}{ending}{last}", "instruction_attributes": list(asked)}


def _annotation(item: dict, own: dict) -> dict[str, Any]:
    values = [entries[0]["value"] for entries in (item["customization_options"] or {}).values() if entries]
    wish = f" in {' and '.join(values)}" if values else ""
    return {
        "asin": item["asin"],
        "instruction": f"i am looking for {item['query']}{wish} that are {own['instruction_attributes'][0]}.",
        "instruction_attributes": own["instruction_attributes"][:1],
        "instruction_options": values,
    }


def _asin(rng: random.Random) -> str:
    return "B0" + "".join("0123456789BCDFGHJKLMNPQRSTVWXYZ"[int(rng.random() * 31)] for _ in range(8))


def _case_study() -> tuple[dict, dict]:
    """A purchase that the TRCA paper tells of: a navy men's dress shirt of cotton heather in x-large for $39.99."""
    values = {"Color": ("white", "navy", "charcoal"), "Size": ("medium", "large", "x-large", "xx-large")}
    item = {
        "asin": "B0HEATHER1",
        "name": "Harrow & Finch Men's Oxford Dress Shirt, Long Sleeve, Cotton Heather",
        "category": "fashion",
        "query": "men's dress shirts",
        "product_category": LINES[0].path,
        "full_description": "Oxford dress shirt by Harrow & Finch. Designed with care, tested for years.",
        "small_description": ["Cotton heather: 60 % cotton, 40 % polyester ", "Machine wash: cold, inside out "],
        "pricing": "$39.99",
        "customization_options": {name: [{"value": value} for value in own] for name, own in values.items()},
    }
    own = {
        "attributes": ["machine wash", "long sleeve", "cotton heather"],
        "instruction": "Find me machine wash men's dress shirts with cotton heather",
        "instruction_attributes": ["machine wash", "cotton heather"],
    }
    return item, own


def _odd(rng: random.Random) -> list[tuple[dict, dict]]:
    """Products that trip careless code, each by one thing or two."""

    def values(name: str, *texts: str) -> dict[str, list[dict[str, str]]]:
        return {name: [{"value": text} for text in texts]}

    shades = ("black", "wine", "navy", "army\xa0green", "it's pink")
    fifty = [f"{letter}{number}-{shade}" for letter in "abcde" for number in (1, 2) for shade in shades]
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("decorative pillows", {"name": ""}),
        ("coffee", {"small_description": "One text instead of a list of bullets."}),
        ("coffee", {"small_description": ["", "  ", "two\nlines ", "a <b>bold</b> claim & more"]}),
        ("lipsticks", {"small_description": [], "full_description": ""}),
        ("tv mounts", {"full_description": "<p>Fits <i>most</i> screens</p> &amp; walls", "pricing": ""}),
        ("projectors", {"pricing": "$1,299.00"}),
        ("sofas & couches", {"pricing": "$980.00", "customization_options": {"Color": None, **values("Size", "xl")}}),
        ("area rugs", {"customization_options": values("SIZE", "160x100\xa0cm (65\"x39.5\")", " 4/6 ft ")}),
        ("women's dresses", {"customization_options": values("Color", *fifty)}),
        ("face creams", {"customization_options": {
            **values("Color", "small", "mint"), **values("Size", "small", "small", "large")}}),
        ("headphones", {"name": "Phone Headphones Phone Case Headphones for Phone", "full_description": "  "}),
        ("tea beverages", {"pricing": "$5.00 - $9.00 - $12.00", "full_description": "Thé glacé ☕ 抹茶 ★"}),
        ("men's t-shirts", {"customization_options": values("Fit Type", "features", "Men")}),
    )  # fmt: skip
    made = []
    for query, change in changes:
        line = next(line for line in LINES if line.query == query)
        item, own = _product(line, 0, rng)
        made.append(({**item, **change}, own))
    for _, own in made[:2]:  # without a title or an attribute of its own, a product is no goal
        own.pop("instruction")
        own.pop("instruction_attributes")
    made[1][1]["attributes"] = []
    return made

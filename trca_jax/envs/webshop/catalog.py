"""WebShop's own file formats to products: what the shop sells, after the loader's rules.

Source: spec/webshop.md section 2.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ITEMS, ATTRIBUTES, HUMAN, TITLE_NOUNS = "items_shuffle", "items_ins_v2", "items_human_ins", "title_nouns"  # files

_PRODUCT_KEYS = ("asin", "name", "category", "query", "product_category", "full_description", "small_description")
_NO_PRICE = (100.0,)
_NO_ATTRIBUTES = ("DUMMY_ATTR",)


@dataclass(frozen=True)
class Annotation:
    """A person's instruction for a product: its text, the attributes and the option values that it asks for."""

    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """One product as every page shows it, and what only the reward knows.

    price_range: one price, or the lowest and the highest. options: values of each option name, in page order.
    Hidden: category, query and product_category (steps joined by ' › '), attributes, and the goals made from
    instruction, instruction_attributes (synthetic) or annotations (human). nouns: of the title, in order, with repeats;
    None where no list is known.
    """

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    price_range: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]]
    category: str
    query: str
    product_category: str
    attributes: tuple[str, ...]
    instruction: str | None = None
    instruction_attributes: tuple[str, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    nouns: tuple[str, ...] | None = field(default=None, repr=False)

    @property
    def price_tag(self) -> str:
        """'$10.0', or '$10.0 to $12.5'."""
        return " to ".join(f"${price}" for price in self.price_range)

    def document(self) -> str:
        """What the search index holds of the product."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join((self.title, self.description, *self.bullets[:1], options)).lower()


def make_products(
    items: Iterable[Mapping[str, Any]],
    attributes: Mapping[str, Mapping[str, Any]],
    annotations: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    nouns: Mapping[str, Iterable[str]] | None = None,
    where: str = "the catalogue",
) -> tuple[Product, ...]:
    """Products from the contents of WebShop's files, in their order.

    items: of items_shuffle.json. attributes: of items_ins_v2.json. annotations: of items_human_ins.json. nouns: of each
    title. Products whose asin is 'nan', longer than ten letters or a repetition are left out, as WebShop does.
    Raises ValueError naming the product for what cannot be read.
    """
    annotations, nouns = annotations or {}, nouns or {}
    products: dict[str, Product] = {}
    for number, item in enumerate(items):
        if not isinstance(item, Mapping) or not isinstance(item.get("asin"), str):
            raise ValueError(f"{where}: product {number} has no asin; expected an object with the keys of WebShop")
        asin = item["asin"]
        if asin == "nan" or len(asin) > 10 or asin in products:
            continue
        try:
            own = attributes.get(asin, {})
            products[asin] = _product(item, own, annotations.get(asin, ()), nouns.get(asin))
        except (KeyError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{where}: product {asin} (number {number}) cannot be read: {reason}") from None
    if not products:
        raise ValueError(f"{where} holds no product; expected at least one")
    return tuple(products.values())


def _product(item: Mapping[str, Any], own: Any, annotated: Any, nouns: Any) -> Product:
    own = _object(own, "attributes entry")
    texts = {key: item[key] for key in _PRODUCT_KEYS}
    bullets = texts.pop("small_description")
    for key, value in texts.items():
        _text(value, key)
    for key in ("category", "query"):
        if not texts[key].strip():
            raise ValueError(f"its {key} is empty")
    return Product(
        asin=texts["asin"],
        title=texts["name"],
        description=texts["full_description"],
        bullets=_texts(bullets if isinstance(bullets, list | tuple) else [bullets], "small_description"),
        price_range=read_price(item.get("pricing")),
        options=_options(item.get("customization_options")),
        category=texts["category"],
        query=texts["query"].lower().strip(),
        product_category=texts["product_category"],
        attributes=_texts(own.get("attributes", _NO_ATTRIBUTES), "attributes"),
        instruction=None if own.get("instruction") is None else _text(own["instruction"], "instruction"),
        instruction_attributes=_texts(own.get("instruction_attributes") or (), "instruction_attributes"),
        annotations=tuple(_annotation(entry) for entry in _list(annotated, "list of annotations")),
        nouns=None if nouns is None else _texts(nouns, "nouns"),
    )


def _annotation(entry: Any) -> Annotation:
    entry = _object(entry, "annotation")
    return Annotation(
        _text(entry["instruction"], "instruction"),
        _texts(entry["instruction_attributes"], "instruction_attributes"),
        _texts(entry["instruction_options"], "instruction_options"),
    )


def read_price(pricing: str | None) -> tuple[float, ...]:
    """The one or two prices of '$12.50' or '$9.99 to $1,014.98'; 100 dollars where nothing is written.

    Raises ValueError for a text without a price, and for one that no number can hold.
    """
    if not pricing:
        return _NO_PRICE
    parts = [re.sub(r"[^\d.]", "", part) for part in _text(pricing, "pricing").split("$")[1:]][:2]
    try:
        prices = tuple(float(part) for part in parts)
    except ValueError:
        prices = ()
    if not prices or not all(map(math.isfinite, prices)):
        raise ValueError(f"its pricing {pricing!r:.60} is no price; expected a text such as '$12.50' or '$9 to $12.50'")
    return prices


def _options(customization: Any) -> dict[str, tuple[str, ...]]:
    return {
        name.lower(): tuple(_value(entry, f"option {name!r}") for entry in _list(entries, f"option {name!r}"))
        for name, entries in _object(customization or {}, "customization_options").items()
        if entries is not None
    }


def _value(entry: Any, what: str) -> str:
    return _text(_object(entry, what)["value"], what).strip().replace("/", " | ").lower()


def _checked(value: Any, kind: type | tuple[type, ...], what: str, expected: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"its {what} is {value!r:.80}, expected {expected}")
    return value


def _object(value: Any, what: str) -> Mapping[str, Any]:
    return _checked(value, Mapping, what, "an object")


def _list(value: Any, what: str) -> Iterable:
    return _checked(value, (list, tuple), what, "a list")


def _text(value: Any, what: str) -> str:
    return _checked(value, str, what, "a text")


def _texts(values: Any, what: str) -> tuple[str, ...]:
    return tuple(_text(value, what) for value in _list(values, what))


def read_json(path: Path, kind: type) -> Any:
    """The list or object that a JSON file holds. Raises ValueError naming the file if it is missing or cut short."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"no file {path}; expected WebShop's {path.name}") from None
    except (OSError, ValueError, RecursionError) as error:
        size = path.stat().st_size if path.exists() else 0
        raise ValueError(
            f"{path} ({size} bytes) is no complete JSON file ({type(error).__name__}: {error}); it may be half "
            "downloaded, so fetch it again"
        ) from None
    if not isinstance(content, kind):
        raise ValueError(f"{path} holds a {type(content).__name__}, expected a {kind.__name__} as in WebShop")
    return content

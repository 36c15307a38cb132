"""Read a shopping instruction into what it asks for: fixed rules over its text, no model and nothing hidden.

Source: spec/webshop.md section 8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trca_jax.envs.analyzer import STOP_WORDS, words
from trca_jax.envs.porter import stem
from trca_jax.rubrics.schema import BindingField

FIELDS = (
    BindingField("required_options", "symbols", "Options asked for, such as 'color: navy'.", width=6),
    BindingField("option_total", "number", "How many options are asked for, if any."),
    BindingField("attributes", "symbols", "Phrases of the instruction that a product may be said to have.", width=24),
    BindingField("kind", "symbol", "Last word of what is asked for, such as 'shirts'."),
    BindingField("price_bound", "number", "Dollars that the price must be below, if the instruction says so."),
)

_PRICE = re.compile(r",? and price lower than (\d+(?:\.\d+)?) dollars\.?$")
_BREAK = re.compile(r", | with | for | and ")
_HEAD_END = re.compile(r" with | for ")
_TEMPLATE = "Find me "


@dataclass(frozen=True)
class Wish:
    """What an instruction asks for. base: the text without options and price. options: name to value; None if the text
    is not of WebShop's template and may ask for options in any words. price_bound: None if there is none.

    attributes: phrases of the base text, in lower case. kind_words: last words of what is asked for, such as 'dress',
    'shirts'; kind: their stems, by which titles are compared. head: the base text up to its first 'with' or 'for'.
    """

    base: str = ""
    head: str = ""
    options: Mapping[str, str] | None = None
    price_bound: float | None = None
    attributes: tuple[str, ...] = ()
    kind_words: tuple[str, ...] = ()
    kind: frozenset[str] = frozenset()

    def required(self) -> tuple[str, ...] | None:
        """The options as 'name: value'."""
        return None if self.options is None else tuple(f"{name}: {value}" for name, value in self.options.items())

    def names_kind(self, text: str) -> bool | None:
        """Whether a title or query says the kind of product that is asked for."""
        return bool(self.kind & {stem(word.lower()) for word in _plain(text)}) if self.kind else None

    def phrases_in(self, text: str) -> tuple[str, ...]:
        """The attributes that a text holds, whatever its letters' case."""
        lowered = text.lower()
        return tuple(phrase for phrase in self.attributes if phrase in lowered)


def read_wish(instruction: str) -> Wish:
    """What any instruction asks for; never raises.

    >>> wish = read_wish("Find me soft shirts with long sleeve with color: navy, and price lower than 50.00 dollars")
    >>> wish.base, dict(wish.options), wish.price_bound
    ('soft shirts with long sleeve', {'color': 'navy'}, 50.0)
    """
    text, bound = instruction.strip(), None
    if match := _PRICE.search(text):
        text, bound = text[: match.start()], float(match[1])
    options = None
    if text.startswith(_TEMPLATE):
        text, options = _options(text.removeprefix(_TEMPLATE))
    head = _HEAD_END.split(text, maxsplit=1)[0]
    kind_words = _kind_words(head)
    kind = frozenset(stem(word.lower()) for word in kind_words)
    return Wish(text, head, options, bound, _phrases(text, head), kind_words, kind)


def _options(text: str) -> tuple[str, dict[str, str] | None]:
    """The text before the options, and the options: they begin after the last ' with ' before the first ': '. None if
    something there is no 'name: value'."""
    colon = text.find(": ")
    start = text.rfind(" with ", 0, colon) if colon > 0 else -1
    if start < 0:
        return text, {}
    parts = re.split(r", and (?=[^:,]+: )", text[start + len(" with ") :])
    if not all(": " in part for part in parts):
        return text, None
    return text[:start], dict(part.split(": ", 1) for part in parts)


def _phrases(base: str, head: str) -> tuple[str, ...]:
    """Pieces of the base text between commas and joining words. A piece of the head may hold the kind behind an
    attribute of unknown length, so its first two and three words are phrases too."""
    found: list[str] = []
    head = head.lower()
    of_head = len(_BREAK.split(head))
    for number, piece in enumerate(_BREAK.split(base.lower())):
        piece, parts = piece.strip(" ."), piece.split()
        if number < of_head:
            found += [" ".join(parts[:size]) for size in (2, 3) if size < len(parts)]
        if piece and piece != head:
            found.append(piece)
    return tuple(dict.fromkeys(found))


def _kind_words(head: str) -> tuple[str, ...]:
    """The last two words, or those on both sides of the last '&'."""
    before, joint, last = head.rpartition(" & ")
    content = [[word for word in _plain(part) if word.lower() not in STOP_WORDS] for part in (before, last)]
    return tuple(content[0][-1:] + content[1][-3:] if joint else content[1][-2:])


def _plain(text: str) -> list[str]:
    """Words without possessives."""
    return [re.sub(r"['’][sS]$", "", word) for word in words(text)]


def binding(wish: Wish) -> dict[str, Any]:
    """The binding fields of a wish."""
    return {
        "required_options": wish.required(),
        "option_total": len(wish.options) if wish.options else None,
        "attributes": wish.attributes or None,
        "kind": wish.kind_words[-1].lower() if wish.kind_words else None,
        "price_bound": wish.price_bound,
    }

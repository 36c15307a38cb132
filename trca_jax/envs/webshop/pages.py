"""Read one observation back into the page that it shows. Knows the pages' wording, and nothing of the task."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from trca_jax.envs.webshop.actions import DONE, ITEM, RESULTS, SEARCH, SEPARATOR, SUB_PAGE

_COUNT = re.compile(r"Page (\d+) \(Total results: (\d+)\)")
_TAG = re.compile(r"\$(\d+\.\d+(?:e[+-]?\d+)?)(?: to \$(\d+\.\d+(?:e[+-]?\d+)?))?")
_TAIL = ["Rating: N.A.", "Description", "Features", "Reviews", "Buy Now"]


class Row(NamedTuple):
    """A product in a list of results. low: its price, or the lower end of it, in dollars; None if it cannot be read."""

    asin: str
    title: str
    low: float | None


class Page(NamedTuple):
    """What an observation shows.

    kind: 'search', 'results', 'item', 'sub-page' or 'done'. number, total, rows: of results. parts: of an item page
    what stands between '< Prev' and the price (option names, their values, the title), of a sub-page its texts.
    low: an item's price, as in `Row`.
    """

    kind: str
    number: int | None = None
    total: int | None = None
    rows: tuple[Row, ...] = ()
    parts: tuple[str, ...] = ()
    low: float | None = None


@lru_cache(maxsize=1 << 13)  # rollouts of one group see the same pages
def read_page(observation: str) -> Page | None:
    """The page of one of verl-agent's observations; None for any other text. Of the last page nothing else is read."""
    if observation.startswith("Thank you for shopping with us!"):
        return Page(DONE)
    if len(observation) < 2 or observation[0] != "'" or observation[-1] != "'":
        return None
    parts = observation[1:-1].split(f"'{SEPARATOR}'")
    if parts == ["Search"]:
        return Page(SEARCH)
    if len(parts) < 2 or parts[0] != "Back to Search":
        return None
    if match := _COUNT.fullmatch(parts[1]):
        number = int(match[1])
        rest = parts[3 if number > 1 else 2 :]
        if rest[:1] != ["Next >"]:
            return None
        return Page(RESULTS, number, int(match[2]), rows=_rows(rest[1:]))
    if parts[1] != "< Prev":
        return None
    if parts[-len(_TAIL) :] == _TAIL and len(parts) > 7 and parts[-6].startswith("Price: "):
        return Page(ITEM, parts=tuple(parts[2:-6]), low=_low(parts[-6].removeprefix("Price: ")))
    return Page(SUB_PAGE, parts=tuple(parts[2:]))


def _rows(parts: list[str]) -> tuple[Row, ...]:
    """Asin, title and price in turn; a product without a title leaves no part for it."""
    rows, at = [], 0
    while at < len(parts):
        price = next((i for i in (at + 1, at + 2) if i < len(parts) and _TAG.fullmatch(parts[i])), None)
        if price is None:
            break
        rows.append(Row(parts[at], parts[at + 1] if price == at + 2 else "", _low(parts[price])))
        at = price + 1
    return tuple(rows)


def _low(tag: str) -> float | None:
    match = _TAG.fullmatch(tag)
    return min(float(price) for price in match.groups() if price) if match else None


def groups(parts: tuple[str, ...], title: str, offered: frozenset[str]) -> dict[str, str]:
    """Which option each value of an item page belongs to, in lower case; of two options that offer it, the later one.

    title: of the product, '' if it has none. offered: what can be clicked on the page: a part that cannot is a name.
    """
    if title and parts and parts[-1] == title:
        parts = parts[:-1]
    found, name = {}, None
    for part in parts:
        if part.lower() not in offered:
            name = part
        elif name is not None:
            found[part] = name
    return found

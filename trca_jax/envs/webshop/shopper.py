"""Scripted play for demonstrations: a shopper that knows no more than the adapter, and noise that looks around."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from trca_jax.envs.webshop.actions import BACK, BUY, ITEM, NEXT, PREVIOUS, RESULTS, SEARCH, SUB_PAGE, parse_action
from trca_jax.envs.webshop.facts import WebshopAdapter
from trca_jax.envs.webshop.pages import Row
from trca_jax.envs.webshop.queries import offered_queries

_FREE = "search[<your query>]"
_PATIENCE = 3  # results pages that are read for one search


class Shopper:
    """Searches in the instruction's words, opens the row that fits best, chooses the options asked for, and buys.

    Deterministic under `rng`, which breaks ties between rows.
    """

    def __init__(self, adapter: WebshopAdapter, rng: Random) -> None:
        self._adapter, self._rng = adapter, rng
        self._searched: set[str] = set()

    def act(self, admissible: Sequence[str]) -> str:
        """The next command: one of those admissible now, or a search where any may be written."""
        known, offered = self._adapter.known, set(admissible)
        kind = known.page.kind if known.page else None
        if kind == SEARCH:
            return self._search(admissible)
        if kind == RESULTS:
            wishes = self._choose_row()
        elif kind == SUB_PAGE:
            wishes = [PREVIOUS]
        elif kind == ITEM:
            wishes = self._finish(offered)
        else:
            wishes = [BACK]
        commands = (f"click[{wish}]" for wish in (*wishes, BACK))
        return next((command for command in commands if command in offered), None) or wander(self._rng, admissible)

    def _search(self, admissible: Sequence[str]) -> str:
        """The longest query not tried yet, and any after that."""
        wish = self._adapter.known.wish
        if _FREE in admissible:
            queries = offered_queries(f"{wish.base}")
        else:
            queries = [parse_action(command)[1] for command in admissible if command.startswith("search[")]
        fresh = [query for query in queries if query and query not in self._searched]
        if not queries:
            return wander(self._rng, admissible)
        query = max(fresh, key=len) if fresh else self._rng.choice(list(queries))
        self._searched.add(query)
        return f"search[{query}]"

    def _choose_row(self) -> list[str]:
        known = self._adapter.known
        fresh = [row for row in known.page.rows if row.asin not in self._adapter.looked_at and self._affordable(row)]
        best = sorted(fresh, key=lambda row: (-self._fit(row), self._rng.random()))
        wishes = [row.asin.lower() for row in best if self._fit(row) > 0][:1]
        if (known.number or 1) < _PATIENCE and known.page.rows:
            wishes.append(NEXT)
        return wishes

    def _finish(self, offered: set[str]) -> list[str]:
        """Options that are still to be chosen, then the purchase; back where one of them is not on offer."""
        known = self._adapter.known
        wanted = known.wish.options or {}
        if known.product is None or known.options is None or not self._affordable(known.product):
            return [PREVIOUS]
        if any(f"click[{value}]" not in offered for value in wanted.values()):
            return [PREVIOUS]
        missing = [value for name, value in wanted.items() if known.options.get(name) != value]
        return [*missing[:1], BUY]

    def _fit(self, row: Row) -> float:
        """How much of what is asked for a row's title says; 0 if it is of another kind."""
        wish = self._adapter.known.wish
        if not wish.names_kind(row.title):
            return 0.0
        return 1.0 + len(wish.phrases_in(row.title))

    def _affordable(self, row: Row) -> bool:
        bound = self._adapter.known.wish.price_bound
        return bound is None or row.low is None or row.low <= bound


class Demonstrator:
    """Noisy demonstrations: at each step the shopper with probability `share`, else `wander`."""

    def __init__(self, adapter: WebshopAdapter, rng: Random, share: float) -> None:
        self._shopper = Shopper(adapter, rng)
        self._adapter, self._rng, self._share = adapter, rng, share

    def act(self, admissible: Sequence[str]) -> str:
        if self._rng.random() < self._share:
            return self._shopper.act(admissible)
        if _FREE in admissible:
            return f"search[{self._rng.choice(offered_queries(self._adapter.known.wish.base))}]"
        return wander(self._rng, admissible)


def wander(rng: Random, admissible: Sequence[str]) -> str:
    """Noise that looks around: a purchase is as rare as one command in thirty, whatever else is on the page.

    Raises ValueError if there is no command at all.
    """
    if not admissible:
        raise ValueError("no admissible command; the episode is over or the environment gave none")
    others = [command for command in admissible if command != f"click[{BUY}]"]
    if others and (len(others) == len(admissible) or rng.random() > 1 / 30):
        return rng.choice(others)
    return f"click[{BUY}]"

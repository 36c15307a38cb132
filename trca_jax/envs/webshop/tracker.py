"""What is known of a shopping session at one moment, from its pages and the actions that were carried out.

The page shows neither the product's id nor the chosen options; both follow from clicks. Source: spec/webshop.md 8.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from trca_jax.envs.analyzer import analyze
from trca_jax.envs.webshop.actions import (
    BACK,
    BUY,
    DONE,
    ITEM,
    NEXT,
    PREVIOUS,
    RESULTS,
    SEARCH,
    SUB_PAGE,
    SUB_PAGES,
    parse_action,
)
from trca_jax.envs.webshop.binder import Wish
from trca_jax.envs.webshop.pages import Page, Row, groups, read_page

CONTEXTS = ("page", "sub_page", "query", "number", "product", "options")


class Tracker:
    """All that is known now; `facts.WebshopAdapter` keeps it.

    page: what is shown, None if the last observation could not be read. query: words of the last search that was
    carried out. number: of the results page. product: the row of the product that is looked at. options: what was
    chosen there, by name; None if something unreadable happened since. sub_page: which. last: the kind of the last
    action carried out: 'search', 'next', 'previous', 'back', 'open', 'choose', 'read', 'buy', or None. choice: option
    and value of the last 'choose'.
    """

    def __init__(self, wish: Wish, first_observation: str) -> None:
        self.wish = wish
        self.page: Page | None = read_page(first_observation)
        self.query: str | None = None
        self.number: int | None = None
        self.product: Row | None = None
        self.options: dict[str, str] | None = {}
        self.sub_page: str | None = None
        self.last: str | None = None
        self.choice: tuple[str, str] | None = None

    def context(self) -> dict[str, Hashable]:
        """What is known, by the names of CONTEXTS. query: sorted index terms, as their order finds the same."""
        page = self.page.kind if self.page else None
        query = None if self.query is None else tuple(sorted(analyze(self.query))) or (self.query,)
        if self.query is not None and self.query.startswith("<"):
            query = (self.query,)
        options = None if self.options is None else tuple(sorted(self.options.items()))
        product = self.product and self.product.asin
        return dict(zip(CONTEXTS, (page, self.sub_page, query, self.number, product, options), strict=True))

    def act(self, action: str | None, observation: str, admissible: Sequence[str]) -> bool | None:
        """Follows one action. Returns whether it was carried out; None if that cannot be told."""
        before, self.page = self.page, read_page(observation)
        verb, target = parse_action(action or "")
        offered = frozenset(command[6:-1] for command in admissible if command.startswith("click[")) - {"search"}
        self.last = None
        if verb == "search" and target:
            expected = self._search(target)
        elif verb == "click" and target in offered:
            expected = self._click(target, before, offered)
        else:
            expected = before.kind if before else None
            if self.page is None or (before is not None and self.page.kind != expected):
                self._forget()
            return False
        if self.page is None or self.page.kind != expected:
            self._forget()
            return None
        if self.page.kind == RESULTS:
            self.number = self.page.number
        return True

    def _search(self, query: str) -> str:
        self.last, self.query, self.number = "search", query, None
        self._leave()
        return RESULTS

    def _click(self, target: str, before: Page | None, offered: frozenset[str]) -> str | None:
        """Follows a click on something that is on the page; returns the kind of page that must come."""
        kind = before.kind if before else None
        if target == BACK:
            self.last, self.query, self.number = "back", None, None
            self._leave()
            return SEARCH
        if target == BUY and kind == ITEM:
            self.last = "buy"
            return DONE
        if target == NEXT and kind == RESULTS:
            self.last = "next"
            return RESULTS
        if target == PREVIOUS:
            self.last = "previous"
            if kind == SUB_PAGE:
                self.sub_page = None
                return ITEM
            self._leave()
            return RESULTS
        if kind == RESULTS:
            self.product = next((row for row in before.rows if row.asin.lower() == target), None)
            self.last, self.options = "open", None if self.product is None else {}
            return ITEM
        if kind == ITEM and target in SUB_PAGES:
            self.last, self.sub_page = "read", target
            return SUB_PAGE
        if kind == ITEM:
            self.last = "choose"
            name = groups(before.parts, self.product.title if self.product else "", offered).get(target)
            self.choice = None if name is None else (name, target)
            if name is None or self.options is None:
                self.options = None
            else:
                self.options = {**self.options, name: target}
            return ITEM
        self._forget()
        return None

    def _leave(self) -> None:
        self.product, self.options, self.sub_page = None, {}, None

    def _forget(self) -> None:
        """Something unreadable happened: only the next search or return to the search page makes all known again."""
        self.product = self.options = self.sub_page = None
        self.number = self.page.number if self.page else None

    def chosen_right(self) -> frozenset[str] | None:
        """The required options that are chosen now, as 'name: value'."""
        required = self.wish.required()
        if required is None or self.options is None:
            return None
        return frozenset(required) & {f"{name}: {value}" for name, value in self.options.items()}

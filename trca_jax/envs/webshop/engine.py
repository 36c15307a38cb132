"""The shop as a pure state machine: a state and an action give the next state. Shops are shared, states are small.

Pages, ranks, rewards and silently ignored actions equal those of WebShop's text environment, state by state.
Source: spec/webshop.md section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from random import Random

from trca_jax.envs.bm25 import Index
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
from trca_jax.envs.webshop.catalog import Product
from trca_jax.envs.webshop.goals import Goal, draw_prices
from trca_jax.envs.webshop.reward import Reward, reward

TOP = 50  # products a search finds at most
PAGE_SIZE = 10


@dataclass(frozen=True)
class State:
    """One moment of a session.

    page: which kind of page is shown. keywords: of the last search. found: numbers of the products it found. number: of
    the results page, from 1. product: the one that is looked at. options: chosen values by name. sub_page: which.
    opened: asins ever looked at since the search page. outcome: of the purchase. draws: random result lists so far.
    """

    page: str = SEARCH
    keywords: tuple[str, ...] | None = None
    found: tuple[int, ...] = ()
    number: int | None = None
    product: Product | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    sub_page: str | None = None
    opened: frozenset[str] = frozenset()
    outcome: Reward | None = None
    draws: int = 0


class Shop:
    """A catalogue with its search index, the same for every session; nothing in it changes."""

    def __init__(self, products: tuple[Product, ...], index: Index):
        self.products = products
        self.index = index
        self.prices = cache(self._prices)
        self._menus: dict[str, dict[str, str | None]] = {}

    def _prices(self, seed: int) -> dict[str, float]:
        return draw_prices(self.products, Random(seed))

    @cached_property
    def _by_category(self) -> dict[str, tuple[int, ...]]:
        return _group(product.category for product in self.products)

    @cached_property
    def _by_query(self) -> dict[str, tuple[int, ...]]:
        return _group(product.query for product in self.products)

    def find(self, keywords: tuple[str, ...], draw: str) -> tuple[int, ...]:
        """Numbers of the products that a search shows. WebShop's hidden prefixes: `<c>` lists a category, `<q>` a
        product query, `<r>` draws at random (here with the seed `draw`), and `<a>` finds nothing (it ends WebShop's own
        text environment)."""
        prefix, *rest = keywords
        if prefix == "<r>":
            rng = Random(draw.encode("utf-8", "surrogatepass"))
            return tuple(rng.sample(range(len(self.products)), min(TOP, len(self.products))))
        if prefix == "<c>":
            return self._by_category.get(rest[0].strip() if rest else "", ())
        if prefix == "<q>":
            return self._by_query.get(" ".join(rest).strip(), ())
        return () if prefix == "<a>" else self.index.search(" ".join(keywords), TOP)

    def shown(self, state: State) -> tuple[Product, ...]:
        """The products of a results page."""
        first = ((state.number or 1) - 1) * PAGE_SIZE
        return tuple(self.products[number] for number in state.found[first : first + PAGE_SIZE])

    def menu(self, state: State) -> Mapping[str, str | Product | None]:
        """What can be clicked, in WebShop's order, and what it means: the option's name, the product, or a button."""
        if state.page == SEARCH:
            return {"search": None}
        if state.page == RESULTS:
            buttons = (BACK, NEXT) if state.number == 1 else (BACK, PREVIOUS, NEXT)
            return dict.fromkeys(buttons) | {product.asin.lower(): product for product in self.shown(state)}
        if state.page == SUB_PAGE:
            return {BACK: None, PREVIOUS: None}
        return self._item_menu(state.product) if state.page == ITEM else {}

    def _item_menu(self, product: Product) -> dict[str, str | None]:
        """A value that two options offer is the later one's, and one that reads like a button is that button."""
        menu = self._menus.get(product.asin)
        if menu is None:
            menu = dict.fromkeys((BACK, PREVIOUS, *SUB_PAGES, BUY))
            menu |= {value: name for name, values in product.options.items() for value in values}
            self._menus[product.asin] = menu
        return menu

    def step(self, state: State, goal: Goal, action: str, *, seed: int = 0, option_match: str = "original") -> State:
        """The state after an action; the very same object if the action is not understood or not offered.

        seed: of the drawn prices. Any text is an action: `search[...]` works on every page, `click[...]` on what is in
        the menu, and everything else does nothing.
        """
        verb, argument = parse_action(action)
        if verb == "search" and argument:
            return self._results(state, goal, tuple(argument.split(" ")), 1)
        menu = self.menu(state)
        if verb != "click" or argument not in menu or argument == "search":
            return state
        if argument == BUY:
            price = self.prices(seed)[state.product.asin]
            outcome = reward(state.product, goal, price, state.options, option_match=option_match)
            return _changed(state, page=DONE, outcome=outcome)
        if argument == BACK:
            return State(draws=state.draws)
        if state.page == RESULTS:
            if argument in (PREVIOUS, NEXT):
                number = state.number + (1 if argument == NEXT else -1)
                return self._results(state, goal, state.keywords, number)
            product = menu[argument]
            return _changed(state, page=ITEM, product=product, opened=state.opened | {product.asin})
        if argument == PREVIOUS:
            if state.page == SUB_PAGE:
                return _changed(state, page=ITEM, sub_page=None)
            return self._results(state, goal, state.keywords, state.number)
        if argument in SUB_PAGES:
            return _changed(state, page=SUB_PAGE, sub_page=argument)
        return _changed(state, options={**state.options, menu[argument]: argument})

    def _results(self, state: State, goal: Goal, keywords: tuple[str, ...], number: int) -> State:
        draws = state.draws + (keywords[0] == "<r>")
        found = self.find(keywords, f"{goal.text} {state.draws}")
        return State(RESULTS, keywords, found, number, opened=state.opened, draws=draws)


def _changed(state: State, **fields) -> State:
    """As `dataclasses.replace`, at a tenth of its cost."""
    return State(**{**state.__dict__, **fields})


def _group(keys) -> dict[str, tuple[int, ...]]:
    groups: dict[str, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    return {key: tuple(numbers) for key, numbers in groups.items()}

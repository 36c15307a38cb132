"""Facts of shopping transitions: what each page says has happened, and what of it for the first time.

Nothing is read from the last page, which shows the score, and nothing that the shop hides: goal, product categories,
attributes and the drawn price. Source: spec/webshop.md section 8.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from trca_jax.envs.webshop.actions import RESULTS, SEARCH, SUB_PAGE
from trca_jax.envs.webshop.binder import Wish
from trca_jax.envs.webshop.tracker import Tracker
from trca_jax.rubrics.schema import Fact

FACTS = (
    Fact("parsed", "flag", "The agent's output held an action."),
    Fact("accepted", "flag", "The shop carried the action out; false if it was no command or not on the page."),
    Fact("changed", "flag", "Page, query, product or chosen options are not as before."),
    Fact("empty", "flag", "The results page that came lists no product."),
    Fact("repeated", "flag", "The same words were searched before, or the same product opened and left unchosen."),
    Fact("regressed", "flag", "A wrong value chosen, right ones given up, or a purchase against what is asked for."),
    Fact("searched", "flag", "A search was carried out whose words were never searched before."),
    Fact("query_fits", "flag", "The words of the search name the kind of product that is asked for."),
    Fact("query_attributes", "symbols", "Attributes asked for that the words of the search hold.", width=24),
    Fact("searching", "flag", "Before the action, no page of a product had shown kind, price and options asked for."),
    Fact("listed", "number", "Products listed for the first time whose title names the kind."),
    Fact("opened", "flag", "A product's page was opened for the first time."),
    Fact("title_fits", "flag", "The title of the product looked at names the kind."),
    Fact("price", "number", "Dollars of the product looked at; the lower end of a range."),
    Fact("within_price", "flag", "That price is at most the one asked for; true if none is."),
    Fact("offered", "symbols", "Required options that the page of a product offers, the first time.", width=6),
    Fact("revealed", "symbols", "Attributes asked for that a product is said to have, the first time.", width=24),
    Fact("chosen", "symbols", "Required options that were chosen for a product, the first time.", width=6),
    Fact("complete", "number", "How many required options are chosen, at the first time that all are."),
    Fact("options_met", "flag", "All required options are chosen; true if none is asked for."),
    Fact("bought", "flag", "The purchase was made."),
)

_UNKNOWN = dict.fromkeys(fact.name for fact in FACTS)
_QUIET = {fact.name: {"flag": False, "number": 0, "symbols": ()}[fact.kind] for fact in FACTS}


class WebshopAdapter:
    """Follows one episode (protocol `Adapter`). For scripted play: known, what its texts have told so far, and
    looked_at, asins of the products that were opened."""

    def __init__(self, wish: Wish, first_observation: str) -> None:
        self.known = Tracker(wish, first_observation)
        self.looked_at: set[str] = set()
        self._listed: set[str] = set()
        self._queries: set[Hashable] = set()
        self._revealed: set[tuple[str, str]] = set()
        self._offered: set[tuple[str, str]] = set()
        self._chosen: set[tuple[str, str]] = set()
        self._completed: set[str] = set()
        self._searching: bool | None = True
        self._context = self.known.context()

    def context(self) -> Mapping[str, Hashable]:
        return self._context

    def transition(self, action: str | None, observation: str, admissible: Sequence[str]) -> Mapping[str, Any]:
        known = self.known
        before, had, product = self._context, known.chosen_right(), known.product
        accepted = known.act(action, observation, admissible)
        self._context = known.context()
        if known.page is None or accepted is None:
            return {**_UNKNOWN, "parsed": action is not None, "accepted": accepted}
        facts = dict(_QUIET)
        facts["parsed"], facts["accepted"], facts["searching"] = action is not None, accepted, self._searching
        facts["changed"] = self._context != before
        facts["options_met"] = self._options_met()
        if accepted:
            self._product(facts)
            if known.last == "search":
                self._search(facts)
            if known.page.kind == RESULTS:
                self._results(facts)
            if known.last == "open":
                self._open(facts)
            if known.last == "choose":
                self._choose(facts)
            if known.page.kind == SUB_PAGE:
                self._reveal(facts, " ".join(known.page.parts))
            if known.last == "buy":
                facts["bought"] = True
                met = (facts["title_fits"], facts["within_price"], facts["options_met"])
                facts["regressed"] = True if False in met else None if None in met else False
            if product is not None and known.product is None:
                facts["regressed"] = None if had is None else bool(had)
        return facts

    def _options_met(self) -> bool | None:
        right = self.known.chosen_right()
        return None if right is None else len(right) == len(self.known.wish.options)

    def _product(self, facts: dict) -> None:
        """What is known of the product that is looked at."""
        row, wish = self.known.product, self.known.wish
        if row is None:
            unknown = self.known.page.kind not in (SEARCH, RESULTS)
            facts.update(title_fits=None if unknown else False, price=None, within_price=None if unknown else False)
            return
        facts["title_fits"], facts["price"] = wish.names_kind(row.title), row.low
        if row.low is None:
            facts["within_price"] = None
        else:
            facts["within_price"] = wish.price_bound is None or row.low <= wish.price_bound

    def _search(self, facts: dict) -> None:
        query, wish = self.known.query, self.known.wish
        terms = self._context["query"]
        facts["searched"] = terms not in self._queries
        facts["repeated"] = not facts["searched"]
        self._queries.add(terms)
        facts["query_fits"] = wish.names_kind(query)
        facts["query_attributes"] = wish.phrases_in(query)

    def _results(self, facts: dict) -> None:
        rows = self.known.page.rows
        facts["empty"] = not rows
        fits = [self.known.wish.names_kind(row.title) for row in rows if row.asin not in self._listed]
        self._listed.update(row.asin for row in rows)
        facts["listed"] = None if None in fits else sum(fits)

    def _open(self, facts: dict) -> None:
        row, wish = self.known.product, self.known.wish
        if row is None:
            facts.update(opened=None, repeated=None, offered=None, revealed=None)
            return
        facts["opened"] = row.asin not in self.looked_at
        facts["repeated"] = not facts["opened"]
        self.looked_at.add(row.asin)
        parts, required = self.known.page.parts, wish.required()
        if required is None:
            facts["offered"] = offers = None
        else:
            found = [text for text, pair in zip(required, wish.options.items(), strict=True) if _offers(parts, *pair)]
            facts["offered"] = self._first(self._offered, found)
            offers = len(found) == len(required)
        met = facts["title_fits"], facts["within_price"], offers
        if self._searching is not False and False not in met:  # else what was seen before counts
            self._searching = None if None in met else False
        self._reveal(facts, row.title)

    def _reveal(self, facts: dict, text: str) -> None:
        facts["revealed"] = self._first(self._revealed, self.known.wish.phrases_in(text))

    def _choose(self, facts: dict) -> None:
        known = self.known
        right = known.chosen_right()
        if right is None:
            facts.update(chosen=None, complete=None, regressed=None)
            return
        facts["chosen"] = self._first(self._chosen, sorted(right))
        wanted = known.wish.options
        name, value = known.choice
        facts["regressed"] = wanted.get(name, value) != value
        if known.product and wanted and len(right) == len(wanted) and known.product.asin not in self._completed:
            self._completed.add(known.product.asin)
            facts["complete"] = len(right)

    def _first(self, seen: set[tuple[str, str]], found: Sequence[str]) -> tuple[str, ...] | None:
        """Those found that are new for the product looked at; None if that product is not known."""
        if self.known.product is None:
            return None
        new = [(self.known.product.asin, text) for text in found if (self.known.product.asin, text) not in seen]
        seen.update(new)
        return tuple(text for _, text in new)


def _offers(parts: Sequence[str], name: str, value: str) -> bool:
    """Whether an item page has the option's name and, somewhere behind it, the value."""
    return name in parts and value in parts[parts.index(name) + 1 :]

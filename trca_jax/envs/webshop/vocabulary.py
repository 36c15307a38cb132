"""Every word that the generated catalogue's pages, instructions and commands may hold, for tokenizers made of words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trca_jax.envs.webshop.actions import BUTTONS
from trca_jax.envs.webshop.data import GENERATED, load_shop
from trca_jax.envs.webshop.queries import offered_queries
from trca_jax.envs.webshop.tasks import goal_list

_PAGES = (
    "WebShop Instruction Search Back to Search Page Total results Next Prev SEP Price Rating N.A. Description Features "
    "Reviews Buy Now to Thank you for shopping with us Your code None Paste it in your MTurk interface Purchased asin "
    "options attrs category query product category Target price upper instuction text Goal Reward Your score min 0.0 "
    "max 1.0 Details"
)
_BOUNDS = range(10, 1000, 10)  # dollars that an instruction may name


def vocabulary() -> str:
    """Words of texts in lower case without punctuation, and commands as they are written."""
    texts, commands = [], []
    for kind, found in _written():
        (commands if kind == "command" else texts).append(found)
    words = set(re.sub(r"[^\w\s]", " ", " ".join(texts).lower()).split())
    words.update(word for command in commands for word in command.lower().split())
    return " ".join(sorted(words))


def _written() -> Iterator[tuple[str, str]]:
    yield "text", _PAGES
    yield "text", " ".join(f"{bound}.00" for bound in _BOUNDS)
    yield "text", " ".join(map(str, range(500)))  # numbers of pages, results and cents
    yield from (("command", f"click[{button}]") for button in (*BUTTONS, "search"))
    yield "command", "search[<your query>]"
    for product in load_shop(GENERATED).products:
        yield "command", f"click[{product.asin}]"
        yield "text", " ".join((product.asin, product.title, product.description, *product.bullets, product.price_tag))
        for name, values in product.options.items():
            yield "text", f"{name} {' '.join(values)}"
            yield from (("command", f"click[{value}]") for value in values)
    for kind in ("synthetic", "human"):
        for goal in goal_list(GENERATED, kind, "webshop", 0).goals:
            yield "text", goal.text
            yield from (("command", f"search[{query}]") for query in offered_queries(goal.text))

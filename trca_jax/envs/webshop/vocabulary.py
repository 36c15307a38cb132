"""Every word that the generated catalogue's pages, instructions and commands may hold, for tokenizers made of words."""

from __future__ import annotations

from collections.abc import Iterator

from trca_jax.envs.webshop.actions import BUTTONS
from trca_jax.envs.webshop.brief import brief
from trca_jax.envs.webshop.data import GENERATED, load_shop
from trca_jax.envs.webshop.queries import offered_queries
from trca_jax.envs.webshop.tasks import goal_list


def vocabulary() -> str:
    """Words of texts in few words, and of commands as a tokenizer of words parts them."""
    words = set()
    for text in _texts():
        words.update(brief(text).split())
    for command in _commands():
        words.update(command.lower().split())
    return " ".join(sorted(words))


def _texts() -> Iterator[str]:
    yield "search page price"
    yield " ".join(map(str, range(1, 6)))  # results pages
    yield " ".join(f"${dollars}" for dollars in range(1000))
    for product in load_shop(GENERATED).products:
        yield from (product.asin, product.title, product.description, product.price_tag, *product.bullets)
        for name, values in product.options.items():
            yield from (name, *values)
    for kind in ("synthetic", "human"):
        yield from (goal.text for goal in goal_list(GENERATED, kind, "webshop", 0).goals)


def _commands() -> Iterator[str]:
    yield from ("click", "search", "<your query>", *BUTTONS)
    for product in load_shop(GENERATED).products:
        yield product.asin
        for values in product.options.values():
            yield from values
    for kind in ("synthetic", "human"):
        for goal in goal_list(GENERATED, kind, "webshop", 0).goals:
            yield from offered_queries(goal.text)

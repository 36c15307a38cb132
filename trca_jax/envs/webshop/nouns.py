"""The nouns of product titles, which decide how alike two products are.

WebShop tags titles with spaCy's en_core_web_sm; another model or version gives other rewards (spec/webshop.md section
5). So lists come as data where they exist, from spaCy where it is installed, and from plain words otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace

from trca_jax.envs.analyzer import STOP_WORDS, words
from trca_jax.envs.webshop.catalog import Product


def with_nouns(products: Iterable[Product]) -> tuple[Product, ...]:
    """The products with a list of nouns each; those that have one keep it.

    Warns where neither data nor spaCy is at hand: every word that is no stop word then counts as a noun, by which 12 %
    of the type rewards of first-page products differ from WebShop's.
    """
    products = tuple(products)
    missing = [product for product in products if product.nouns is None]
    if not missing:
        return products
    tagged = _spacy(missing)
    if tagged is None:
        warnings.warn(
            f"{len(missing)} titles have no list of nouns, and spaCy with en_core_web_sm is not installed: rewards "
            "differ from WebShop's; put title_nouns.json beside the catalogue, or install spaCy and its model",
            stacklevel=2,
        )
        tagged = [[word.lower() for word in words(p.title) if word.lower() not in STOP_WORDS] for p in missing]
    found = {product.asin: tuple(nouns) for product, nouns in zip(missing, tagged, strict=True)}
    return tuple(replace(p, nouns=found[p.asin]) if p.nouns is None else p for p in products)


def _spacy(products: list[Product]) -> list[list[str]] | None:
    try:
        import spacy

        tagger = spacy.load("en_core_web_sm")
    except (ImportError, OSError):
        return None
    texts = tagger.pipe(product.title for product in products)
    return [[token.text.lower() for token in text if token.pos_ in ("NOUN", "PROPN")] for text in texts]

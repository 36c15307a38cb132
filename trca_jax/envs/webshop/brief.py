"""WebShop's texts in few words."""

from __future__ import annotations

import re

from trca_jax.envs.webshop.actions import BUTTONS, SEPARATOR

_PAGE = re.compile(r"\(total results: \d+\)")
_BOUND = re.compile(r"\bprice lower than (\d+)(?:\.\d+)? dollars")
_CENTS = re.compile(r"(\$\d+)\.\d+")
_SAME_ON_EVERY_PAGE = {*BUTTONS, "rating: n.a."}
_EMPTY_WORDS = frozenset("a an and am find for i looking me need the to with".split())
_EDGE = ",:;.?!\"'"


def brief(text: str) -> str:
    """A page or instruction in lower case, without buttons, empty words, punctuation around words, and cents. Words
    within an option's value stay as they are, since that is how it is clicked on.

    >>> brief("'< Prev' [SEP] 'size' [SEP] 'x-large | slim' [SEP] 'Dress Shirt, Slim Fit' [SEP] 'Price: $39.99'")
    'size x-large | slim dress shirt slim fit price $39'
    >>> brief("Find me slim fit shirts with size: small, and price lower than 50.00 dollars")
    'slim fit shirts size small below $50'
    """
    parts = [part.lower().strip().strip("'") for part in text.split(SEPARATOR)]
    kept = " ".join(part for part in parts if part not in _SAME_ON_EVERY_PAGE or len(parts) == 1)
    kept = _CENTS.sub(r"\1", _BOUND.sub(r"below $\1", _PAGE.sub("", kept)))
    words = (word.strip(_EDGE) for word in kept.split())
    return " ".join(word for word in words if word and word not in _EMPTY_WORDS)

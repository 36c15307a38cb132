"""WebShop's texts in few words: nothing that decides is lost."""

import doctest
from importlib import import_module

import pytest

from trca_jax.envs.webshop.brief import brief


def test_examples_in_the_docstrings_hold():
    results = doctest.testmod(import_module("trca_jax.envs.webshop.brief"))
    assert results.failed == 0 < results.attempted


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("'Search'", "search"),
        ("'Back to Search' [SEP] 'Page 2 (Total results: 50)' [SEP] '< Prev' [SEP] 'Next >'", "page 2"),
        ("'Page 1 (Total results: 1)' [SEP] 'B0ABCDEFGH' [SEP] 'Cream, Dry Skin' [SEP] '$5.5 to $12.25'",
         "page 1 b0abcdefgh cream dry skin $5 $12"),
        ("'size' [SEP] '16 fl oz (pack of 2)' [SEP] '8.5 b(m) us' [SEP] 'Price: $1299.0' [SEP] 'Rating: N.A.'",
         "size 16 fl oz (pack of 2) 8.5 b(m) us price $1299"),
        ("'Back to Search' [SEP] '< Prev' [SEP] 'It\'s \"good\"; 5.5 of 6.'", "it's good 5.5 of 6"),
        ("i am looking for a dress with color: red, and price lower than 70.00 dollars", "dress color red below $70"),
        ("", ""),
    ],
)  # fmt: skip
def test_few_words(text, short):
    assert brief(text) == short

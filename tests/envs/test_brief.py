"""ALFWorld's texts in few words."""

import doctest
from importlib import import_module

import pytest

from trca_jax.envs.alfworld.brief import brief


def test_examples_in_the_docstrings_hold():
    results = doctest.testmod(import_module("trca_jax.envs.alfworld.brief"))
    assert results.failed == 0 < results.attempted


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.", ""),
        ("You pick up the mug 2 from the shelf 1.", "mug 2 from shelf 1"),
        ("The fridge 1 is closed.", "fridge 1 closed"),
        ("Nothing happens.", "nothing happens"),
        ("On the desk 1, you see nothing.", "desk 1 see nothing"),
        ("desk 1. The desk 1 is here; desk 12", "desk 1 here desk 12"),
        ("You are here. Your task is to: put a mug on the desk.", "here"),
        ("", ""),
    ],
)
def test_few_words(text, short):
    assert brief(text) == short

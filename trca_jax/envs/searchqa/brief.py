"""SearchQA's texts in few words."""

from __future__ import annotations

import re

from trca_jax.envs.searchqa.names import bare, key
from trca_jax.envs.searchqa.texts import read_information

_EMPTY_WORDS = frozenset("a an the it is was were did does do and to that".split())


def brief(text: str) -> str:
    """A question or a list of documents in lower case without punctuation, tags and empty words. A title is left out
    where its text begins with it.

    >>> brief('<information>Doc 1(Title: "Tarn") Tarn is a river. It lies in Norvania.</information>')
    'doc tarn river lies in norvania'
    """
    documents = read_information(text)
    if documents is not None:
        text = " ".join(
            f"doc {'' if key(d.text).startswith(key(bare(d.title))) else d.title} {d.text}" for d in documents
        )
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    return " ".join(word for word in words if word not in _EMPTY_WORDS)

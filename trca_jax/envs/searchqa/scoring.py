"""How good an answer is: exact match, F1 and containment after normalisation.

Source: spec/searchqa.md section 2 (Search-R1, verl-agent and FlashRAG hold the same normalisation).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize(text: str) -> str:
    """Lower case, without ASCII punctuation (nothing takes its place), then without articles, blanks made one.

    >>> normalize("The  U.S.A., an  éclair")
    'usa éclair'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(answer: str, golds: Sequence[str] | str) -> float:
    """1.0 if the answer equals a gold alias after normalisation (empty equals empty); else, and without gold, 0.0.

    >>> exact_match("Vitamin A", ["vitamin"]), exact_match("semi-final", ["semi final"])
    (1.0, 0.0)
    """
    return float(normalize(answer) in map(normalize, _aliases(golds)))


def contains(answer: str, golds: Sequence[str] | str) -> float:
    """1.0 if a normalised gold alias is a substring of the normalised answer, else 0.0 (sub-EM)."""
    found = normalize(answer)
    return float(any(normalize(gold) in found for gold in _aliases(golds)))


def f1(answer: str, golds: Sequence[str] | str) -> float:
    """2·overlap / (words of the answer + words of the gold) over bags of normalised words, for the best alias.

    0.0 without a common word, hence where either is empty.

    >>> f1("Barack Obama", ["Obama", "Barack Hussein Obama"])
    0.8
    """
    words = Counter(normalize(answer).split())
    best = 0.0
    for gold in _aliases(golds):
        wanted = Counter(normalize(gold).split())
        overlap = (words & wanted).total()
        if overlap:
            best = max(best, 2 * overlap / (words.total() + wanted.total()))
    return best


def _aliases(golds: Sequence[str] | str) -> Sequence[str]:
    return [golds] if isinstance(golds, str) else golds

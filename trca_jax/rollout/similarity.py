"""Which texts count as one state: the host's part of methods that compare steps in similar observations."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher


def similar_groups(texts: Sequence[str], threshold: float) -> list[int]:
    """A group 0, 1, … for each text, in order: the first one whose first member is similar enough, else a new one.

    Similar: the Ratcliff–Obershelp ratio of (text, first member) is at least `threshold`, in (0, 1]. Equal texts are
    compared once. O(distinct texts · groups) comparisons. Source: methods 4.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"similarity threshold {threshold} must be in (0, 1]")
    known: dict[str, int] = {}
    firsts: list[SequenceMatcher] = []
    for text in texts:
        if text not in known:
            known[text] = next((g for g, first in enumerate(firsts) if _similar(text, first, threshold)), len(firsts))
            if known[text] == len(firsts):
                firsts.append(SequenceMatcher(None, "", text))
    return [known[text] for text in texts]


def _similar(text: str, first: SequenceMatcher, threshold: float) -> bool:
    first.set_seq1(text)
    # The first two are upper bounds of the third, and far cheaper.
    return all(ratio() >= threshold for ratio in (first.real_quick_ratio, first.quick_ratio, first.ratio))

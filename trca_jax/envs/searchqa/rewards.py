"""Outcome rewards of the search baselines, and ZeroSearch's curriculum.

Source: spec/methods.md sections 9.1 to 9.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trca_jax.envs.searchqa.scoring import contains, exact_match, f1
from trca_jax.envs.searchqa.texts import Document

_TAG = r"</?(?:think|search|information|answer)>"
_KEY_WEIGHT = 0.618
_NO_TAGS = str.maketrans("<>", "  ")


def _block(tag: str) -> str:
    return rf"<{tag}>(?:(?!{_TAG}).)*+</{tag}>\s*+"


_WELL_FORMED = re.compile(
    rf"\s*+(?:{_block('think')}{_block('search')}{_block('information')})*{_block('think')}{_block('answer')}",
    re.DOTALL,
)


def _contents(text: str, tag: str) -> Iterator[str]:
    """What stands between each opening tag and the closing tag that follows it; in linear time for any text."""
    at = 0
    while (start := text.find(f"<{tag}>", at)) >= 0 and (stop := text.find(f"</{tag}>", start)) >= 0:
        yield text[start + len(tag) + 2 : stop]
        at = stop


def last_answer(text: str, at_least: int = 1) -> str | None:
    """The last answer block of a text, stripped; None with fewer than `at_least` blocks.

    Search-R1 reads prompt and response and wants two blocks because its prompt shows one; verl-agent wants one. Both
    would score a block inside a retrieved passage: hand in the agent's own words only.
    """
    found = list(_contents(text, "answer"))
    return found[-1].strip() if len(found) >= at_least else None


def well_formed(transcript: str) -> bool:
    """Whether the text after the prompt is (think search information)* think answer, with only blanks between.

    >>> well_formed("<think>easy</think> <answer>Rome</answer>"), well_formed("so <answer>Rome</answer>")
    (True, False)
    """
    return _WELL_FORMED.fullmatch(transcript) is not None


def transcript(turns: Sequence[tuple[str, Sequence[Document] | None]]) -> str:
    """An episode as `search_r1_reward` reads it: the agent's own words, and behind each search what it brought.

    turns: the words of each, and the documents that its search brought (None: no search was carried out). An
    information block that the agent wrote itself is made one that never ends, so that it spoils the form and no text in
    it counts. Angle brackets of documents become blanks: in the public code a tag in a passage spoils the agent's form.

    >>> transcript([("<search>Tarn</search>", [Document("Tarn", "A <b>river</b>.")]), ("<answer>river</answer>", None)])
    '<search>Tarn</search><information>Tarn A  b river /b .</information><answer>river</answer>'
    """
    parts = []
    for words, found in turns:
        parts.append(words.replace("</information>", "<information>"))
        if found is not None:
            told = " ".join(f"{title} {text}" for title, text in found)
            parts.append(f"<information>{told.translate(_NO_TAGS)}</information>")
    return "".join(parts)


def search_r1_reward(
    transcript: str,
    answer: str | None,
    golds: Sequence[str] | str,
    *,
    structure: float = 0.0,
    final: float = 0.0,
    retrieval: float = 0.0,
) -> float:
    """Search-R1: exact match, and with its format reward what form and retrieval are worth beside it.

    Right: 1, less `structure` if the transcript is not well formed. Wrong: `structure` if it is well formed, plus
    `retrieval` if a gold alias stands in an information block; else `final` if there is an answer at all (None: there
    is none), else 0. Version 0.3 has structure 0.2, final 0.1, retrieval 0. R1-Instruct is the same without searches.
    """
    form = well_formed(transcript)
    if answer is not None and exact_match(answer, golds):
        return 1.0 if form else 1.0 - structure
    if form:
        found = any(contains(block, golds) for block in _contents(transcript, "information"))
        return structure + retrieval if found else structure
    return 0.0 if answer is None else final


def noise_probability(start: float, end: float, step: int, total: int) -> float:
    """ZeroSearch: the probability that a search brings noise, start + (4ˣ − 1)/3·(end − start), x = min(step/total, 1).

    step: of training, from 0. Raises ValueError if total < 1.
    """
    if total < 1:
        raise ValueError(f"total is {total} training steps; expected at least 1")
    return start + (4 ** min(step / total, 1) - 1) / 3 * (end - start)


def key_score(queries: Sequence[str], keys: Sequence[Sequence[str]]) -> float:
    """StepSearch: mean over key groups of the F1 of the last query that fits this group best; 0 without either.

    keys: for each group its phrasings. F1 is that of the best phrasing, rounded to 4 decimals; a query that fits
    several groups equally counts for the first, and one without a common word for none.
    """
    found = [0.0] * len(keys)
    for query in queries:
        fits = [round(f1(query, group), 4) for group in keys]
        best = max(fits, default=0.0)
        if best:
            found[fits.index(best)] = best
    return sum(found) / len(keys) if keys else 0.0


def stepsearch_reward(answer: str | None, golds: Sequence[str] | str, queries: Sequence[str], keys) -> float:
    """StepSearch: F1 of the answer (rounded to 4 decimals) + 0.618·`key_score`; −1 without an answer (None)."""
    if answer is None:
        return -1.0
    return round(f1(answer, golds), 4) + _KEY_WEIGHT * key_score(queries, keys)

"""How much of a task's golden documents each search brought: a learning signal that neither agent nor rubric may see.

Source: spec/methods.md section 9.3 (StepSearch).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from trca_jax.envs.searchqa.names import key
from trca_jax.envs.searchqa.texts import Document, read_information


def golden_match(
    observations: Sequence[str], golden: Sequence[Sequence[Document]]
) -> tuple[list[list[float]], list[float]]:
    """(similarity [T][G], redundancy [T]) of T observations with G golden documents, each given as its passages.

    similarity: the largest cosine of tf·idf vectors between a document found and a passage of the golden document; 0
    where nothing was found. idf = ln((1 + n)/(1 + df)) + 1 over the n documents of the episode and all golden passages.
    redundancy: the share of an observation's documents that were shown before, in it or in an earlier one.
    """
    found = [read_information(text) or () for text in observations]
    texts = {d: Counter(key(f"{d.title} {d.text}").split()) for group in (*found, *golden) for d in group}
    df = Counter(word for words in texts.values() for word in words)
    idf = {word: math.log((1 + len(texts)) / (1 + n)) + 1 for word, n in df.items()}
    vectors = {d: _unit({word: n * idf[word] for word, n in words.items()}) for d, words in texts.items()}
    similarity = [
        [max((_dot(vectors[d], vectors[g]) for d in documents for g in passages), default=0.0) for passages in golden]
        for documents in found
    ]
    seen: set[Document] = set()
    redundancy = []
    for documents in found:
        again = 0
        for document in documents:
            again += document in seen
            seen.add(document)
        redundancy.append(again / len(documents) if documents else 0.0)
    return similarity, redundancy


def _unit(vector: dict[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(x * x for x in vector.values())) or 1.0
    return {word: x / length for word, x in vector.items()}


def _dot(a: dict[str, float], b: dict[str, float]) -> float:
    return sum(x * b[word] for word, x in a.items() if word in b)

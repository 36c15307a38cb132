"""The embedded search engine: BM25 over passages in memory, titles counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trca_jax.envs.bm25 import Index
from trca_jax.envs.searchqa.retrieval import Passage


class Bm25Retriever:
    """BM25 (k₁ = 0.9, b = 0.4) over `title title text` of each passage; equal scores stand in the corpus' order.

    A query of stop words, emoji or unknown words alone finds nothing. Raises ValueError if the passages hold no word.
    Source: spec/searchqa.md section 4.
    """

    def __init__(self, passages: Sequence[Passage]):
        self._passages = tuple(passages)
        texts = (f"{passage.title}\n{passage.title}\n{passage.text}" for passage in self._passages)
        self._index = Index.build(texts, range(len(self._passages)))

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """See `Retriever.search`; it never fails."""
        if k < 1:
            raise ValueError(f"k is {k} passages a query; expected at least 1")
        found = {query: self._index.scored(query, k) for query in dict.fromkeys(queries)}
        return [[replace(self._passages[n], score=score) for n, score in found[query]] for query in queries]

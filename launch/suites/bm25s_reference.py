"""The package bm25s on given texts and queries, in a process of its own: importing it starts JAX.

Reads {"texts", "queries", "k", "batch"} as JSON from stdin; prints {"index_s", "single_ms", "batch_ms", "found"}, where
times are CPU time of all threads and found holds the numbers of the best texts for each query.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median

import bm25s
import Stemmer


def main() -> None:
    given = json.load(sys.stdin)
    stemmer, queries, size = Stemmer.Stemmer("english"), given["queries"], given["batch"]

    def tokens(texts: list[str]):
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    def search(some: list[str]) -> list[list[int]]:
        numbers, scores = index.retrieve(tokens(some), k=given["k"], show_progress=False)
        return [row[score > 0].tolist() for row, score in zip(numbers, scores, strict=True)]

    def took(some: list[str]) -> float:
        start = time.process_time()
        search(some)
        return (time.process_time() - start) * 1e3

    start = time.process_time()
    index = bm25s.BM25(k1=0.9, b=0.4)
    index.index(tokens(given["texts"]), show_progress=False)
    measured = {
        "index_s": time.process_time() - start,
        "single_ms": median(took([query]) for query in queries[:size]),
        "batch_ms": median(took(queries[at : at + size]) for at in range(0, min(len(queries), 8 * size), size)),
        "found": search(queries),
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

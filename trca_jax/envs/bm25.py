"""BM25 search whose ranks equal Lucene's, ties included: the order of the results is what an agent observes.

Source: Anserini's BM25, k₁ = 0.9, b = 0.4 (spec/webshop.md section 4, spec/searchqa.md section 4).
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from trca_jax.envs.analyzer import analyze, term, words

K1, B = np.float32(0.9), np.float32(0.4)
VERSION = 1  # of the index files; raise it when the analyzer or the layout changes
_REMEMBERED = 4096  # queries a process, 50 numbers each
_STOP = -1  # the number of all stop words
_ARRAYS = ("starts", "documents", "gains", "order")


def coded_length(n: int) -> int:
    """The document length that Lucene's one-byte norm keeps: n below 24, else 24 + (n − 24) cut to 4 leading bits.

    >>> [coded_length(n) for n in (23, 39, 41, 120)]
    [23, 39, 40, 120]
    """
    if n < 24:
        return n
    drop = max((n - 24).bit_length() - 4, 0)
    return 24 + ((n - 24) >> drop << drop)


class _Numbers(dict):
    """Word as it stands to the number of its term, worked out when a word is first met."""

    def __init__(self):
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        name = term(word)
        self[word] = number = self.terms.setdefault(name, len(self.terms)) if name else _STOP
        return number


class Index:
    """An inverted index in four arrays and a term list.

    Score of document d for a query with term counts c: Σ_t c_t·idf_t·(1 − 1/gain[t,d]), added up in double precision
    and rounded to float32, where idf_t = ln(1 + (N − df + ½)/(df + ½)), gain = 1 + tf/(k₁(1 − b + b·length/mean)) and
    length is `coded_length`. Equal scores stand in the order of the documents' names.
    terms: sorted. starts [terms+1]: where a term's postings begin. documents, gains [postings]. order [N]: rank of each
    name.
    """

    def __init__(self, terms: Sequence[str], starts: np.ndarray, documents: np.ndarray, gains: np.ndarray, order):
        self._terms = {name: i for i, name in enumerate(terms)}
        self.starts, self.documents, self.gains, self.order = starts, documents, gains, order
        self._seen: OrderedDict[tuple[str, int], tuple[int, ...]] = OrderedDict()

    @property
    def terms(self) -> list[str]:
        return list(self._terms)

    @classmethod
    def build(cls, texts: Iterable[str], names: Sequence[str] | range) -> Index:
        """The index of documents with distinct names; with a range as names, they keep their order.

        Raises ValueError if they hold no word at all.
        """
        numbers = _Numbers()
        lengths, rows, columns, counts = [], [], [], []
        for text in texts:
            found = Counter(map(numbers.__getitem__, words(text)))
            found.pop(_STOP, None)
            rows.append(np.full(len(found), len(lengths), np.int32))
            columns.append(np.array(list(found), np.int32))
            counts.append(np.array(list(found.values()), np.int32))
            lengths.append(found.total())
        terms = numbers.terms
        if not terms:
            raise ValueError("the search index would be empty: no text holds a word")
        lengths = np.array(lengths)
        coded = np.array([coded_length(n) for n in range(lengths.max() + 1)])[lengths].astype(np.float32)
        norms = np.float32(1) / (K1 * ((np.float32(1) - B) + B * coded / np.float32(lengths.sum() / len(lengths))))
        row, column, count = map(np.concatenate, (rows, columns, counts))
        alphabetic = sorted(terms)
        place = np.empty(len(terms), np.int32)
        place[[terms[name] for name in alphabetic]] = np.arange(len(terms))
        column = place[column]
        by_term = np.argsort(column, kind="stable")
        gains = np.float32(1) + count[by_term].astype(np.float32) * norms[row[by_term]]
        starts = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(terms)))])
        order = np.empty(len(lengths), np.int32)
        order[sorted(range(len(lengths)), key=names.__getitem__)] = np.arange(len(lengths))
        return cls(alphabetic, starts, row[by_term], gains, order)

    def search(self, query: str, top: int) -> tuple[int, ...]:
        """The numbers of the best documents, at most `top`, best first."""
        found = self._seen.get((query, top))
        if found is None:
            found = tuple(number for number, _ in self.scored(query, top))
            if len(query) < 1000:
                self._seen[query, top] = found
                if len(self._seen) > _REMEMBERED:
                    self._seen.popitem(last=False)
        return found

    def scored(self, query: str, top: int) -> list[tuple[int, float]]:
        """(document number, score) of the best documents, at most `top`, best first; none that shares no term."""
        size = len(self.order)
        scores = np.zeros(size)
        for name, count in Counter(analyze(query)).items():
            number = self._terms.get(name)
            if number is None:
                continue
            part = slice(self.starts[number], self.starts[number + 1])
            frequency = int(self.starts[number + 1] - self.starts[number])
            idf = np.float32(math.log(1 + (size - frequency + 0.5) / (frequency + 0.5)))
            weight = np.float32(count) * idf
            scores[self.documents[part]] += weight - weight / self.gains[part]
        rounded = scores.astype(np.float32)
        hits = np.flatnonzero(rounded > 0)
        if len(hits) > top:
            least = np.partition(rounded[hits], -top)[-top]
            hits = hits[rounded[hits] >= least]
        best = hits[np.lexsort((self.order[hits], -rounded[hits]))][:top]
        return list(zip(best.tolist(), rounded[best].tolist(), strict=True))

    def save(self, folder: Path) -> None:
        """Writes the index to a new folder, complete or not at all."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            for name in _ARRAYS:
                np.save(Path(partial) / f"{name}.npy", getattr(self, name), allow_pickle=False)
            (Path(partial) / "terms.txt").write_text("\n".join(self._terms), encoding="utf-8")
            whole = Path(partial) / "whole"
            whole.mkdir()
            for file in Path(partial).iterdir():
                if file != whole:
                    file.rename(whole / file.name)
            try:
                os.rename(whole, folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise

    @classmethod
    def load(cls, folder: Path) -> Index:
        """An index that `save` wrote; postings stay on disk until they are used."""
        try:
            arrays = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS]
            terms = (folder / "terms.txt").read_text(encoding="utf-8").split("\n")
            starts, documents, gains, _ = arrays
            if len(starts) != len(terms) + 1 or not len(documents) == len(gains) == starts[-1]:
                raise ValueError(f"{len(terms)} terms and {len(documents)} postings do not fit its list of starts")
        except (OSError, EOFError, ValueError) as error:
            raise ValueError(f"{folder} is no search index ({error}); delete the folder to have it made anew") from None
        return cls(terms, *arrays)


def cached_index(texts: Sequence[str], names: Sequence[str], cache: Path) -> Index:
    """The index of these documents from the folder `cache`, built and kept there at the first use."""
    digest = hashlib.sha256(f"{VERSION}\0".encode())
    for name, text in zip(names, texts, strict=True):
        digest.update(f"{name}\0{text}\0".encode("utf-8", "surrogatepass"))
    folder = cache / f"index-{digest.hexdigest()[:24]}"
    if not folder.is_dir():
        Index.build(texts, names).save(folder)
    return Index.load(folder)

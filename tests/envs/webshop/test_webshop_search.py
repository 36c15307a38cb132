"""Ranks equal to the last place, against records of the real engine and a slow BM25."""

import math
import os
import random
from collections import Counter

import numpy as np
import pytest
from webshop_worlds import golden, real

from trca_jax.envs.analyzer import analyze
from trca_jax.envs.bm25 import Index, cached_index, coded_length
from trca_jax.envs.webshop.engine import TOP


def test_recorded_searches(shared_data):
    shop, _ = real(shared_data)
    queries = golden(shared_data, "search")["queries"]
    assert len(queries) == 381
    for case in queries:
        found = shop.index.scored(case["query"], TOP)
        assert [shop.products[number].asin for number, _ in found] == case["asins"], case["query"]
        np.testing.assert_allclose([score for _, score in found[:5]], case["top_scores"], atol=6e-5)
        assert shop.index.search(case["query"], TOP) == tuple(number for number, _ in found)


WORDS = ["apple", "berry", "cherry", "melon", "grape", "peach"]


def random_documents(seed, count):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, weights=(9, 5, 3, 2, 1, 1), k=rng.randint(1, 60))) for _ in range(count)]


def slow_scores(texts, query):
    """BM25 in double precision, a loop a line of its definition."""
    lists = [analyze(text) for text in texts]
    mean = sum(map(len, lists)) / len(lists)
    scores = []
    for terms in lists:
        total = 0.0
        for word in analyze(query):
            df = sum(word in other for other in lists)
            tf = terms.count(word)
            if tf:
                idf = math.log(1 + (len(lists) - df + 0.5) / (df + 0.5))
                total += idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * coded_length(len(terms)) / mean))
        scores.append(total)
    return scores


@pytest.mark.parametrize("seed", range(5))
def test_scores_against_a_slow_bm25(seed):
    texts = random_documents(seed, 80)
    names = [f"N{number:03d}" for number in range(80)]
    random.Random(seed).shuffle(names)
    index = Index.build(texts, names)
    for query in ("apple", "melon grape", "berry berry apple", "peach unknown"):
        exact = slow_scores(texts, query)
        found = index.scored(query, TOP)
        np.testing.assert_allclose([score for _, score in found], [exact[n] for n, _ in found], rtol=1e-5)
        least = min((score for _, score in found), default=0)
        assert len(found) == min(TOP, sum(score > 0 for score in exact))
        assert all(exact[n] <= least * (1 + 1e-5) for n in set(range(80)) - {n for n, _ in found})
        ranks = [(-score, names[number]) for number, score in found]
        assert ranks == sorted(ranks)


def test_equal_scores_stand_in_the_order_of_names_also_at_the_cut():
    names = [f"N{number:03d}" for number in range(90)]
    random.Random(1).shuffle(names)
    index = Index.build(["same words here"] * 90, names)
    assert [names[number] for number in index.search("words", TOP)] == sorted(names)[:TOP]


def test_the_length_is_the_one_byte_code():
    """Lucene's code by its definition: what is above 24 keeps its four leading bits."""
    for n in range(5000):
        kept, step = n, 1
        if n >= 24:
            while (n - 24) // step >= 16:
                step *= 2
            kept = 24 + (n - 24) // step * step
        assert coded_length(n) == kept
    assert [coded_length(n) for n in (0, 1, 23, 24, 39, 40, 41, 42, 56, 59, 60)] == [
        0, 1, 23, 24, 39, 40, 40, 42, 56, 56, 60
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["", " ", "the of and", "$$$ !!!", "zzzz", "\0", "\ud800", "'" * 1000])
def test_queries_without_a_known_word_find_nothing(query):
    assert Index.build(["apple", "berry"], ["a", "b"]).search(query, TOP) == ()


def test_a_query_of_ten_thousand_words():
    index = Index.build(random_documents(0, 200), [str(n) for n in range(200)])
    many = " ".join(WORDS * 1666 + [f"word{n}" for n in range(4)])
    assert len(index.search(many, TOP)) == TOP


def test_nothing_to_search_is_an_error():
    with pytest.raises(ValueError, match="no text holds a word"):
        Index.build(["", "..."], ["a", "b"])


def test_the_disk_cache_gives_the_same_and_is_used(tmp_path, monkeypatch):
    texts, names = random_documents(3, 50), [f"N{n}" for n in range(50)]
    built = Index.build(texts, names)
    cached = cached_index(texts, names, tmp_path / "cache")
    monkeypatch.setattr(Index, "build", None)
    again = cached_index(texts, names, tmp_path / "cache")
    for query in ("apple", "melon grape", "berry berry peach"):
        assert built.scored(query, TOP) == cached.scored(query, TOP) == again.scored(query, TOP)
    assert again.terms == built.terms
    assert [path.name[:6] for path in (tmp_path / "cache").iterdir()] == ["index-"]


def test_other_documents_have_another_cache(tmp_path):
    for text in ("apple", "berry"):
        cached_index([text], ["N"], tmp_path)
    cached_index(["apple"], ["M"], tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_damaged_cache_names_its_folder(tmp_path):
    cached_index(["apple"], ["N"], tmp_path)
    (folder,) = tmp_path.iterdir()
    (folder / "gains.npy").write_bytes(b"half")
    with pytest.raises(ValueError, match=f"{folder.name}.*delete the folder"):
        cached_index(["apple"], ["N"], tmp_path)


@pytest.mark.parametrize("name", ["starts", "documents", "gains", "order", "terms"])
def test_a_cache_with_a_file_cut_short_names_its_folder(tmp_path, name):
    cached_index(["apple berry", "berry cherry"], ["N", "M"], tmp_path)
    (folder,) = tmp_path.iterdir()
    (file,) = folder.glob(f"{name}.*")
    whole = file.read_bytes()
    for size in (0, 5, len(whole) // 2):
        file.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=f"{folder.name}.*delete the folder"):
            cached_index(["apple berry", "berry cherry"], ["N", "M"], tmp_path)


def test_a_cache_that_breaks_off_leaves_nothing(tmp_path, monkeypatch):
    index = Index.build(["apple"], ["N"])
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        index.save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_counts_of_the_query_count():
    index = Index.build(["apple berry", "apple"], ["a", "b"])
    (once, twice) = (dict(index.scored(query, TOP))[0] for query in ("berry", "berry berry"))
    assert twice == pytest.approx(2 * once)
    assert Counter(analyze("berry berries")) == {"berri": 2}

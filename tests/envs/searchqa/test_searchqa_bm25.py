"""The embedded search engine against a loop, and what it finds in the real passages."""

import json
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.envs.analyzer import analyze
from trca_jax.envs.bm25 import coded_length
from trca_jax.envs.searchqa.bm25 import Bm25Retriever
from trca_jax.envs.searchqa.corpus import read_corpus
from trca_jax.envs.searchqa.retrieval import Passage

WORDS = ["river", "king", "novel", "film", "sea", "poet", "song", "town"]


def passages(seed, count):
    rng = random.Random(seed)
    return [
        Passage(
            f"{count - n}", " ".join(rng.choices(WORDS, k=2)), " ".join(rng.choices(WORDS, k=rng.randint(1, 50))), 0
        )
        for n in range(count)
    ]


def slow(corpus, query):
    """(id, score) of all matching passages, best first, a loop a line of the definition."""
    lists = [analyze(p.title) + analyze(p.title) + analyze(p.text) for p in corpus]
    mean = sum(map(len, lists)) / len(lists)
    scores = []
    for position, terms in enumerate(lists):
        score = 0.0
        for word in analyze(query):
            df = sum(word in other for other in lists)
            tf = terms.count(word)
            if tf:
                idf = math.log(1 + (len(lists) - df + 0.5) / (df + 0.5))
                score += idf * tf / (tf + 0.9 * (1 - 0.4 + 0.4 * coded_length(len(terms)) / mean))
        scores.append((-score, position))
    return [(corpus[position].id, -score) for score, position in sorted(scores) if score]


@pytest.mark.parametrize("seed", range(3))
def test_against_the_loop(seed):
    corpus = passages(seed, 60)
    engine = Bm25Retriever(corpus)
    for query in ("river", "a king's novels", "film film poet", "songs of the sea unknown"):
        (found,), expected = engine.search([query], 7), slow(corpus, query)
        assert [p.score for p in found] == pytest.approx([score for _, score in expected[:7]], rel=1e-5)
        exact = dict(expected)
        assert [exact[p.id] for p in found] == pytest.approx([score for _, score in expected[:7]], rel=1e-5)


def test_the_title_counts_twice():
    corpus = [Passage("a", "tide", "moon", 0), Passage("b", "moon", "tide", 0), Passage("c", "", "sun sun sun", 0)]
    (first,) = Bm25Retriever(corpus).search(["moon"], 2)
    assert [p.id for p in first] == ["b", "a"] and first[0].score > first[1].score


def test_equal_scores_stand_in_the_order_of_the_corpus():
    corpus = [Passage(str(n), "same", "words", 0) for n in (10, 9, 2, 33, 1)]
    engine = Bm25Retriever([Passage("x", "other", "thing", 0), *corpus])
    for k in (1, 2, 4):
        assert [p.id for p in engine.search(["words"], k)[0]] == ["10", "9", "2", "33"][:k]


@pytest.mark.parametrize("query", ["", "  ", "the of and", "🙂🙃", "zyxwv", "?!", "<>"])
def test_a_query_without_a_known_word_finds_nothing(query):
    engine = Bm25Retriever(passages(0, 30))
    assert engine.search([query, "river", query], 3)[::2] == [[], []]
    assert engine.search([query], 3) == [[]]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "the", "nothing", "🙂", ""]), max_size=6), st.integers(1, 80))
def test_a_batch_equals_its_queries_alone(queries, k):
    engine = _ENGINE
    batch = engine.search(queries, k)
    assert batch == [engine.search([query], k)[0] for query in queries]
    assert all(len(found) <= k and all(p.score > 0 for p in found) for found in batch)
    assert all(found == sorted(found, key=lambda p: -p.score) for found in batch)
    assert [found[:2] for found in batch] == engine.search(queries, min(k, 2))


_ENGINE = Bm25Retriever(passages(5, 40))


def test_bad_settings_are_one_line():
    with pytest.raises(ValueError, match="k is 0 passages a query"):
        _ENGINE.search(["river"], 0)
    with pytest.raises(ValueError, match="no text holds a word"):
        Bm25Retriever([Passage("1", "", "?!", 0)])


def test_what_it_finds_in_the_real_passages(shared_data):
    """Mean share of the supporting titles among the best three for the question as it stands."""
    folder = shared_data / "searchqa"
    engine = Bm25Retriever(read_corpus(folder / "corpus.jsonl"))
    for name, recorded in [
        ("nq/train", 80.2),
        ("hotpotqa/dev", 66.8),
        ("2wikimultihopqa/dev", 63.3),
        ("musique/dev", 48.7),
    ]:
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").open(encoding="utf-8")]
        wanted = [(row["question"], set(row["metadata"].get("supporting_titles", ()))) for row in rows]
        wanted = [(question, titles) for question, titles in wanted if titles]
        found = engine.search([question for question, _ in wanted], 3)
        shares = [
            len(titles & {p.title for p in best}) / len(titles) for (_, titles), best in zip(wanted, found, strict=True)
        ]
        assert 100 * sum(shares) / len(shares) == pytest.approx(recorded, abs=0.6), name

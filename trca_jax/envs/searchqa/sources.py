"""Corpus, names and search engine of a data source, made once a process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from trca_jax.envs.searchqa import generator
from trca_jax.envs.searchqa.binder import Reading, read_question
from trca_jax.envs.searchqa.bm25 import Bm25Retriever
from trca_jax.envs.searchqa.corpus import read_corpus
from trca_jax.envs.searchqa.http import HttpRetriever
from trca_jax.envs.searchqa.names import Names
from trca_jax.envs.searchqa.retrieval import Passage, Retriever
from trca_jax.envs.searchqa.texts import VERL_AGENT, Document, shown

GENERATED = generator.NAME
BM25 = "bm25"
_CORPUS = "corpus.jsonl"


@cache
def passages(source: str) -> tuple[Passage, ...]:
    """The corpus: that of the generated world, or `corpus.jsonl` of a folder. Raises ValueError as `read_corpus`."""
    return generator.corpus() if source == GENERATED else read_corpus(_file(source))


@cache
def corpus_facts(source: str) -> dict[str, Any] | None:
    """Name, number of passages and sha256 of the corpus: of its file, or of the generated rows as such a file.

    None if there is no corpus at hand. Raises ValueError as `passages` does."""
    if source == GENERATED:
        name, content = "generated world", ("".join(f"{json.dumps(row)}\n" for row in generator.corpus_rows())).encode()
        digest = hashlib.sha256(content)
    elif (path := _file(source)).is_file():
        name = f"{path.resolve().parent.name}/{path.name}"
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    else:
        return None
    return {"name": name, "passages": len(passages(source)), "sha256": digest.hexdigest()}


@cache
def names(source: str) -> Names:
    """What the corpus says about names; without a corpus at hand (a server may hold it) nothing is known."""
    return Names.of(passages(source)) if source == GENERATED or _file(source).is_file() else Names()


@cache
def _by_title(source: str) -> dict[str, list[Passage]]:
    found: dict[str, list[Passage]] = {}
    for passage in passages(source):
        found.setdefault(passage.title, []).append(passage)
    return found


def golden_documents(source: str, titles: Sequence[str]) -> list[list[Document]]:
    """The passages of each title that the corpus has, as agents see them. Raises ValueError as `passages` does."""
    found = (_by_title(source).get(title) for title in titles)
    return [[shown(passage, VERL_AGENT) for passage in own] for own in found if own]


@lru_cache(maxsize=1 << 14)
def reading(source: str, question: str) -> Reading:
    """What a question says, with the names of the source's corpus."""
    return read_question(question, names(source))


@cache
def retriever(source: str, engine: str) -> Retriever:
    """The search engine. engine: 'bm25' over the source's corpus, or addresses of servers, joined by commas.

    Raises ValueError for a server that does not answer, a missing or malformed corpus, or another word.
    """
    if engine == BM25:
        return Bm25Retriever(passages(source))
    if "://" not in engine:
        raise ValueError(
            f"retriever {engine!r} is unknown; expected {BM25!r}, or addresses such as http://localhost:8000"
        )
    servers = HttpRetriever(tuple(part.strip() for part in engine.split(",")))
    servers.check()
    return servers


def _file(source: str) -> Path:
    path = Path(source).expanduser()
    return (path if path.is_dir() else path.parent) / _CORPUS

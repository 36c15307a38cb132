"""SearchQA's embedded search engine beside the package bm25s."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from ml_collections import ConfigDict

from launch.command import console
from launch.suites import Row
from trca_jax.envs.searchqa import generator
from trca_jax.envs.searchqa.bm25 import Bm25Retriever
from trca_jax.envs.searchqa.corpus import read_corpus
from trca_jax.envs.searchqa.datasets import read_file
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.retrieval import Passage
from trca_jax.envs.searchqa.sources import GENERATED

TOP, BATCH = 3, 128


def retrieval(config: ConfigDict, quick: bool) -> list[Row]:
    """Index time, time of one query and of 128 at once, and the share of supporting titles among the best three.

    config.env.data: 'generated', or a folder with corpus.jsonl and `<set>/<split>.jsonl`. Times are CPU time. The
    reference is there only where bm25s and PyStemmer are installed. Raises ValueError if the folder is not as expected.
    """
    return searchqa(config.env.data, quick)


def searchqa(source: str, quick: bool) -> list[Row]:
    """As `retrieval`. source: what is config.env.data there."""
    passages, parts = _read(source, 100 if quick else None)
    questions = [question for part in parts.values() for question in part]
    queries = [question.question for question in questions]
    ours, reference = _measure(passages, queries), _measure_bm25s(passages, queries)
    rows = [
        _row(name, unit, ours[key], reference and reference[key], more_is_better=False)
        for name, unit, key in [
            ("searchqa_index_s", "s", "index_s"),
            ("searchqa_query_ms", "ms", "single_ms"),
            (f"searchqa_{BATCH}_queries_ms", "ms", "batch_ms"),
        ]
    ]
    at = 0
    for name, part in parts.items():
        value, other = (
            side and _recall(passages, part, side["found"][at : at + len(part)]) for side in (ours, reference)
        )
        if value is not None:
            rows.append(_row(f"searchqa_titles_{name}", f"in top {TOP}", value, other, more_is_better=True))
        at += len(part)
    return rows


def holds_corpus(source: str) -> bool:
    """Whether this is a folder with SearchQA's passages."""
    return (Path(source).expanduser() / "corpus.jsonl").is_file()


def _read(source: str, count: int | None) -> tuple[tuple[Passage, ...], dict[str, tuple[Question, ...]]]:
    """The passages, and the first `count` questions of each file by `<set>_<split>`, or of each kind of the generated
    world's test questions."""
    if source == GENERATED:
        found = generator.questions("test")
        kinds = {kind: tuple(q for q in found if q.kind == kind)[:count] for kind in generator.KINDS}
        return generator.corpus(), {f"{GENERATED}_{kind}": part for kind, part in kinds.items()}
    folder = Path(source).expanduser()
    files = sorted(folder.glob("*/*.jsonl"))
    if not files or not holds_corpus(source):
        raise ValueError(f"{source!r} holds no corpus.jsonl with sets beside it; give SearchQA's folder by --data")
    parts = {f"{path.parent.name}_{path.stem}": read_file(path, path.parent.name)[:count] for path in files}
    return read_corpus(folder / "corpus.jsonl"), parts


def _measure(passages: Sequence[Passage], queries: Sequence[str]) -> dict[str, Any]:
    start = time.thread_time()
    engine = Bm25Retriever(passages)
    index_s = time.thread_time() - start
    numbers = {passage.id: number for number, passage in enumerate(passages)}

    def took(some: Sequence[str]) -> float:
        start = time.thread_time()
        engine.search(some, TOP)
        return (time.thread_time() - start) * 1e3

    return {
        "index_s": index_s,
        "single_ms": median(took([query]) for query in queries[:BATCH]),
        "batch_ms": median(took(queries[at : at + BATCH]) for at in range(0, min(len(queries), 8 * BATCH), BATCH)),
        "found": [[numbers[passage.id] for passage in found] for found in engine.search(queries, TOP)],
    }


def _measure_bm25s(passages: Sequence[Passage], queries: Sequence[str]) -> dict[str, Any] | None:
    """The same of bm25s, or None, which is said, where it is not installed."""
    absent = [name for name in ("bm25s", "Stemmer") if importlib.util.find_spec(name) is None]
    if absent:
        console.print(f"no reference: {' and '.join(absent)} not installed (pip install bm25s PyStemmer)")
        return None
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    asked = {"texts": texts, "queries": list(queries), "k": TOP, "batch": BATCH}
    script = Path(__file__).with_name("bm25s_reference.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(asked),
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ValueError(f"bm25s failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def _recall(passages: Sequence[Passage], questions: Sequence[Question], found: Sequence[Sequence[int]]) -> float | None:
    """Mean share of a question's supporting titles among the passages found; None if no question has any."""
    shares = [
        len(titles & {passages[number].title for number in numbers}) / len(titles)
        for question, numbers in zip(questions, found, strict=True)
        if (titles := set(question.supporting_titles))
    ]
    return mean(shares) if shares else None


def _row(name: str, unit: str, value: float, reference: float | None, *, more_is_better: bool) -> Row:
    if not reference:
        return Row(name, value, unit)
    return Row(name, value, unit, reference, value / reference if more_is_better else reference / value)

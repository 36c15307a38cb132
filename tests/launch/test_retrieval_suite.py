"""The retrieval suite on a few passages: what is counted, and that a missing reference is said."""

import json

import pytest

from configs.alfworld import get_config
from launch.suites import Row, retrieval

PASSAGES = {
    "Ada Lovelace": "mathematician and daughter of a poet",
    "Lord Byron": "poet",
    "Byron Bay": "town by the sea",
}


@pytest.fixture
def config(tmp_path):
    """Two sets over three passages: one question finds both of its titles, one finds one of two, one has none."""
    (tmp_path / "hotpotqa").mkdir()
    (tmp_path / "popqa").mkdir()
    rows = [{"id": n, "contents": f'"{title}"\n{text}'} for n, (title, text) in enumerate(PASSAGES.items())]
    questions = [
        {"id": "a", "question": "poet", "golden_answers": ["x"],
         "metadata": {"supporting_titles": ["Ada Lovelace", "Lord Byron"]}},
        {"id": "b", "question": "mathematician", "golden_answers": ["x"],
         "metadata": {"supporting_titles": ["Ada Lovelace", "Byron Bay"]}},
        {"id": "c", "question": "sea", "golden_answers": ["x"]},
    ]  # fmt: skip
    for name, content in [("corpus", rows), ("hotpotqa/dev", questions), ("popqa/test", questions[2:])]:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    config = get_config()
    config.env.data = str(tmp_path)
    return config


def test_rows_without_a_reference_say_so(config, monkeypatch, capsys):
    monkeypatch.setattr(retrieval.importlib.util, "find_spec", lambda name: None)
    rows = {row.name: row for row in retrieval.retrieval(config, quick=False)}
    assert list(rows) == [
        "searchqa_index_s",
        "searchqa_query_ms",
        "searchqa_128_queries_ms",
        "searchqa_titles_hotpotqa_dev",
    ]
    assert rows["searchqa_titles_hotpotqa_dev"] == Row("searchqa_titles_hotpotqa_dev", 0.75, "in top 3")
    assert all(row.reference is row.ratio is None for row in rows.values())
    assert "bm25s and Stemmer not installed" in capsys.readouterr().out


def test_ratios_above_one_are_better(config, monkeypatch):
    measured = {"index_s": 1e9, "single_ms": 1e-9, "batch_ms": 1.0, "found": [[0], [0], [2], [2]]}
    monkeypatch.setattr(retrieval, "_measure_bm25s", lambda passages, queries: measured)
    rows = {row.name: row for row in retrieval.retrieval(config, quick=True)}
    assert rows["searchqa_index_s"].ratio > 1 > rows["searchqa_query_ms"].ratio
    assert rows["searchqa_titles_hotpotqa_dev"] == Row("searchqa_titles_hotpotqa_dev", 0.75, "in top 3", 0.5, 1.5)


def test_a_reference_that_breaks_is_one_line(config, monkeypatch, tmp_path):
    monkeypatch.setattr(retrieval.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(retrieval.sys, "executable", "/bin/false")
    with pytest.raises(ValueError, match="bm25s failed: no message"):
        retrieval.retrieval(config, quick=True)


def test_the_generated_world_needs_no_data(config, monkeypatch):
    monkeypatch.setattr(retrieval, "_measure_bm25s", lambda passages, queries: None)
    config.env.data = "generated"
    rows = {row.name: row.value for row in retrieval.retrieval(config, quick=True)}
    assert list(rows)[3:] == ["searchqa_titles_generated_single", "searchqa_titles_generated_bridge"]
    # The second title of a bridge question is not in it.
    assert rows["searchqa_titles_generated_single"] > 0.95 and 0.45 < rows["searchqa_titles_generated_bridge"] < 0.7


def test_a_folder_without_questions_is_named(config, tmp_path):
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(ValueError, match=r"holds no corpus\.jsonl with sets beside it"):
        retrieval.retrieval(config, quick=True)

"""Passages as they are read, and rows that are refused by name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.envs.searchqa.corpus import passage, read_corpus, split_contents
from trca_jax.envs.searchqa.retrieval import Passage


def write(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_real_passages_have_the_titles_of_their_rows(shared_data):
    path = shared_data / "searchqa" / "corpus.jsonl"
    with path.open(encoding="utf-8") as file:
        rows = list(map(json.loads, file))
    passages = read_corpus(path)
    assert len(passages) == 42_789 and len({p.title for p in passages}) == 36_108
    assert [p.title for p in passages] == [row["title"] for row in rows]
    assert [p.id for p in passages] == [str(n) for n in range(42_789)]
    assert all(f'"{p.title}"\n{p.text}' == row["contents"] for p, row in zip(passages, rows, strict=True))


def test_both_kinds_of_rows_give_the_same(tmp_path):
    contents = {"id": 7, "contents": '"Ada "Countess" Lovelace"\nShe wrote.\nShe died.'}
    title_and_text = {"id": "7", "title": 'Ada "Countess" Lovelace', "text": "She wrote.\nShe died."}
    expected = (Passage("7", 'Ada "Countess" Lovelace', "She wrote.\nShe died.", 0.0),)
    assert (
        read_corpus(write(tmp_path / "a", [contents]))
        == read_corpus(write(tmp_path / "b", [title_and_text]))
        == expected
    )


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ('"T"\n', ("T", "")),
        ("T\ntext", ("T", "text")),
        ("only text", ("", "only text")),
        ('"\ntext', ('"', "text")),
        ('""\ntext', ("", "text")),
        ('"T"\r\ntext', ("T", "text")),
    ],
)
def test_contents(contents, expected):
    assert split_contents(contents) == expected


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"), min_size=1), st.text(min_size=1))
def test_quoted_titles_come_back(title, text):
    title, text = title.strip(), text.strip()
    if text:
        assert split_contents(f'"{title}"\n{text}') == (title, text)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"id": "a", "contents": "x"}, {"id": "b", "title": "T"}], "line 2: row 'b' has no contents and no text"),
        ([{"id": "a", "contents": " \n"}], "line 1: row 'a' has no contents"),
        ([{"id": "a", "contents": None, "text": 3}], "line 1: row 'a' has no contents"),
        ([{"contents": "x"}], "line 1: id is None; expected a text or a number"),
        ([{"id": True, "contents": "x"}], "line 1: id is True"),
        ([{"id": "a", "text": "x", "title": ["T"]}], "line 1: title of row 'a' is \"\\['T'\\]\""),
        ([{"id": 1, "text": "x"}, {"id": 2, "text": "x"}, {"id": "1", "text": "y"}], "line 3: id '1' was met.*line 1"),
        ([["id"]], "line 1: .* is no JSON object"),
        ([], "holds no passage"),
    ],
)
def test_a_bad_row_is_named(tmp_path, rows, words):
    path = write(tmp_path / "corpus.jsonl", rows)
    with pytest.raises(ValueError, match=rf"corpus\.jsonl.*{words}"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"id": "a", "text": "x"}\n{"id": "b", "te', "line 2: no JSON"),
        (b'{"id": "a", "text": "\xff"}', "line 1: no UTF-8"),
        (b"[" * 100_000, "line 1: no JSON"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, content, words):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"corpus\.jsonl, {words}"):
        read_corpus(path)
    with pytest.raises(ValueError, match=r"absent\.jsonl cannot be read: No such file"):
        read_corpus(tmp_path / "absent.jsonl")


def test_a_mark_at_the_start_and_blank_lines_are_no_rows(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "a", "text": "x"}\r\n\r\n\n{"id": "b", "text": "y"}')
    assert [p.id for p in read_corpus(path)] == ["a", "b"]


def test_a_row_keeps_what_looks_like_a_tag():
    assert passage({"id": 1, "contents": '"T"\n<answer>x</answer>'}, 2.5) == Passage(
        "1", "T", "<answer>x</answer>", 2.5
    )

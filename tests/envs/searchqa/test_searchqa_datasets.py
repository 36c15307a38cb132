"""Questions from files of every format, and rows that are refused by name."""

import csv
import importlib.util
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trca_jax.envs.searchqa.datasets import EVAL, SETS, TRAIN_SETS, read_file, read_questions
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.rows import question

ADA = {"id": "q1", "question": " who was Ada Lovelace ", "golden_answers": ["a mathematician", "mathematician"]}
HOTPOT = {
    "_id": "5a", "question": "Which poet was the father of Ada Lovelace?", "answer": "Lord Byron", "type": "bridge",
    "level": "hard", "supporting_facts": [["Ada Lovelace", 0], ["Lord Byron", 2], ["Ada Lovelace", 1]],
    "context": [["Ada Lovelace", ["She was a daughter of Lord Byron."]]],
}  # fmt: skip
MUSIQUE = {
    "id": "2hop__1_2", "question": "Where was the father of Ada Lovelace born?", "answer": "London",
    "answer_aliases": ["London, England", "London"],
    "paragraphs": [
        {"idx": 0, "title": "Ada Lovelace", "paragraph_text": "x", "is_supporting": True},
        {"idx": 1, "title": "Paris", "paragraph_text": "y", "is_supporting": False},
        {"idx": 2, "title": "Lord Byron", "paragraph_text": "z", "is_supporting": True},
    ],
    "question_decomposition": [
        {"id": 1, "question": "Ada Lovelace >> father", "answer": "Lord Byron"},
        {"id": 2, "question": "Where was #1 born, not #7?", "answer": "London"},
    ],
}  # fmt: skip
SEARCH_R1 = {
    "id": "train_0", "question": "who was Ada?", "golden_answers": ["a mathematician"], "data_source": "nq",
    "prompt": [{"role": "user", "content": "Answer"}], "ability": "fact-reasoning",
    "reward_model": {"style": "rule", "ground_truth": {"target": ["a mathematician"]}},
    "extra_info": {"split": "train", "index": 0},
}  # fmt: skip
VERL_AGENT = {
    "data_source": "searchR1_hotpotqa", "prompt": [{"role": "system", "content": "S"}], "metadata": None,
    "reward_model": {"style": "rule", "ground_truth": {"target": ["London"]}},
    "extra_info": {"split": "train", "index": 7},
    "env_kwargs": {"ground_truth": {"target": ["London"]}, "question": "where?", "data_source": "hotpotqa"},
}  # fmt: skip


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_seven_real_sets(shared_data):
    found = read_questions(shared_data / "searchqa", SETS, EVAL)
    counts = {"nq": 1000, "triviaqa": 1000, "popqa": 746, "hotpotqa": 680, "2wikimultihopqa": 659, "musique": 200}
    assert Counter(q.source for q in found) == counts | {"bamboogle": 125}
    assert list(dict.fromkeys(q.source for q in found)) == list(SETS)
    assert len({q.id for q in found}) == len(found)
    assert all(q.question.endswith("?") and q.question == q.question.strip() for q in found)
    wiki = [q for q in found if q.evidences and q.source == "2wikimultihopqa"]
    assert len(wiki) == 164 and sum(q.kind == "comparison" for q in wiki) == 54
    assert Counter(q.kind for q in found if q.source == "musique") == {"2hop": 145, "3hop": 32, "4hop": 23}
    popqa = next(q for q in found if q.id == "popqa/test_10207")
    assert (popqa.kind, popqa.evidences) == ("composer", (("Easy Living", "composer", "Ralph Rainger"),))
    assert not any("#1" in text for q in found for text in q.sub_questions)


def test_the_real_training_sets_are_mixed_in_order(shared_data):
    found = read_questions(shared_data / "searchqa", TRAIN_SETS, "train")
    assert [q.source for q in found] == ["nq"] * 1917 + ["hotpotqa"] * 100
    assert all(q.supporting_titles for q in found)


def test_flashrag(tmp_path):
    path = lines(tmp_path / "test.jsonl", [ADA, {**ADA, "id": 2, "question": "why?", "golden_answers": "so"}])
    first, second = read_file(path, "nq")
    assert first == Question("nq/q1", "who was Ada Lovelace?", ("a mathematician", "mathematician"), "nq", "nq")
    assert (second.id, second.question, second.golden_answers) == ("nq/2", "why?", ("so",))


def test_flashrag_keeps_its_labels_in_metadata():
    facts = {"title": ["A", "B", "A"], "sent_id": [0, 1, 2]}
    row = {
        **ADA,
        "metadata": {"type": "comparison", "supporting_facts": facts, "evidences": [["A", "born in", "1815"]]},
    }
    found = question(row, "2wikimultihopqa", "0")
    assert (found.kind, found.supporting_titles) == ("comparison", ("A", "B"))
    assert found.evidences == (("A", "born in", "1815"),)


def test_hotpotqa_and_2wiki(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([HOTPOT, {**HOTPOT, "_id": "5b", "evidences": [["Ada Lovelace", "father", "Byron"]]}]))
    first, second = read_file(path, "hotpotqa")
    assert first == Question(
        "hotpotqa/5a", HOTPOT["question"], ("Lord Byron",), "hotpotqa", "bridge", ("Ada Lovelace", "Lord Byron")
    )
    assert second.evidences == (("Ada Lovelace", "father", "Byron"),)


def test_musique(tmp_path):
    (found,) = read_file(lines(tmp_path / "dev.jsonl", [MUSIQUE]), "musique")
    assert found.golden_answers == ("London", "London, England")
    assert (found.kind, found.supporting_titles) == ("2hop", ("Ada Lovelace", "Lord Byron"))
    assert found.sub_questions == ("Ada Lovelace >> father", "Where was Lord Byron born, not #7?")


def test_nq_open(tmp_path):
    rows = [{"question": "when was it", "answer": ["1815", "in 1815"]}, {"question": "where", "answer": ["London"]}]
    first, second = read_file(lines(tmp_path / "train.jsonl", rows), "nq")
    assert (first.id, second.id, first.golden_answers) == ("nq/train_0", "nq/train_1", ("1815", "in 1815"))


def test_popqa(tmp_path):
    path = tmp_path / "test.tsv"
    with path.open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t")
        table.writerow(["id", "subj", "prop", "obj", "s_wiki_title", "question", "possible_answers"])
        table.writerow(
            [42, "Ada", "occupation", "mathematician", "Ada L", 'What is "Ada"?', '["mathematician", "poet"]']
        )
    expected = Question(
        "popqa/42", 'What is "Ada"?', ("mathematician", "poet"), "popqa", "occupation",
        evidences=(("Ada", "occupation", "mathematician"),),
    )  # fmt: skip
    assert read_file(path, "popqa") == (expected,)


def test_bamboogle(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text('\ufeffQuestion,Answer\n"Who, in 1815, was born?",Ada Lovelace\nWhere?,London\n', encoding="utf-8")
    first, second = read_file(path, "bamboogle")
    assert (first.id, first.question, first.golden_answers) == (
        "bamboogle/test_0", "Who, in 1815, was born?", ("Ada Lovelace",),
    )  # fmt: skip
    assert second.golden_answers == ("London",)


def test_rows_of_search_r1_and_verl_agent():
    first, second = question(SEARCH_R1, None, "x"), question(VERL_AGENT, None, "x")
    assert (first.id, first.source, first.golden_answers) == ("nq/train_0", "nq", ("a mathematician",))
    assert (second.id, second.source) == ("hotpotqa/train_7", "hotpotqa")
    assert (second.question, second.golden_answers) == ("where?", ("London",))


def test_parquet(tmp_path):
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(ValueError, match=r"train\.parquet needs pyarrow"):
            read_file(lines(tmp_path / "train.parquet", []), "nq")
        pytest.skip("pyarrow is not installed; Parquet files were not read")
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.Table.from_pylist([SEARCH_R1, {**SEARCH_R1, "id": "train_1"}]), tmp_path / "train.parquet")
    write_table(pyarrow.Table.from_pylist([VERL_AGENT]), tmp_path / "verl.parquet")
    assert [q.id for q in read_questions(tmp_path, ["nq"], "train")] == ["nq/train_0", "nq/train_1"]
    assert [q.id for q in read_file(tmp_path / "verl.parquet", None)] == ["hotpotqa/train_7"]
    write_table(pyarrow.Table.from_pylist([SEARCH_R1, {**SEARCH_R1, "question": " "}]), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad\.parquet, row 2: question is ' '"):
        read_file(tmp_path / "bad.parquet", None)
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "bad.parquet").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"cut\.parquet cannot be read as Parquet"):
        read_file(tmp_path / "cut.parquet", None)


def test_a_mixed_file_in_the_folder_serves_the_sets_it_names(tmp_path):
    rows = [{**ADA, "id": n, "data_source": source} for n, source in enumerate(["nq", "hotpotqa", "nq"])]
    lines(tmp_path / "train.jsonl", rows)
    found = read_questions(tmp_path, ["hotpotqa", "nq"], "train")
    assert [q.id for q in found] == ["hotpotqa/1", "nq/0", "nq/2"]
    assert read_questions(tmp_path / "train.jsonl", ["hotpotqa", "nq"], "dev") == found
    with pytest.raises(ValueError, match=r"train\.jsonl holds no question of 'musique'; its rows are of hotpotqa, nq"):
        read_questions(tmp_path, ["nq", "musique"], "train")


def test_eval_is_test_and_else_dev_but_never_train(tmp_path):
    for name, splits in {"nq": ["train", "dev", "test"], "musique": ["train", "dev"], "popqa": ["train"]}.items():
        for split in splits:
            lines(tmp_path / name / f"{split}.jsonl", [{**ADA, "id": split}])
    assert [q.id for q in read_questions(tmp_path, ["musique", "nq", "nq"], EVAL)] == ["musique/dev", "nq/test"]
    with pytest.raises(
        ValueError, match=r"holds no popqa/eval\.jsonl.*it holds musique/dev\.jsonl.*popqa/train\.jsonl"
    ):
        read_questions(tmp_path, ["popqa"], EVAL)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"question": " ? "}, "question is ' \\? '; expected a text that is not empty"),
        ({"question": None}, "question is None"),
        ({"question": ""}, "question is ''; expected"),
        ({"golden_answers": []}, "gold answers are \\[\\]; expected at least one"),
        ({"golden_answers": [" "]}, "gold answers are \\[' '\\]"),
        ({"golden_answers": None}, "gold answers are None"),
        ({"golden_answers": [1815]}, "a gold answer is '1815'; expected a text"),
        ({"golden_answers": {"a": 1}}, "a gold answer should stand in a list"),
        ({"golden_answers": None, "answer": 5}, "a gold answer should stand in a list, but '5'"),
        ({"golden_answers": None, "possible_answers": "[oh"}, "possible_answers is '\\[oh'; expected a JSON list"),
        ({"metadata": "x"}, "metadata is 'x'; expected an object"),
        ({"metadata": {"supporting_facts": [["a"]]}}, "a list of lists of 2 is expected"),
        ({"metadata": {"supporting_titles": "T"}}, "a supporting title should stand in a list, but 'T'"),
        ({"metadata": {"evidences": [["a", "b"]]}}, "a list of lists of 3 is expected"),
        ({"metadata": {"question_decomposition": ["a"]}}, "a part of question_decomposition is no object"),
        ({"metadata": {"prop": "capital"}}, "a part of the evidences is 'None'; expected a text"),
        ({"data_source": 3}, "the row's set is unknown: data_source is 3"),
    ],
)
def test_a_bad_row_is_named(tmp_path, change, words):
    path = lines(tmp_path / "test.jsonl", [{**ADA, "id": "fine"}, {**ADA, **change}])
    with pytest.raises(ValueError, match=rf"test\.jsonl, line 2: {words}"):
        read_file(path, "nq")


def test_an_id_twice_names_both_rows(tmp_path):
    with pytest.raises(ValueError, match=r"line 3: id 'nq/q1' was met before \(.*line 1\)"):
        read_file(lines(tmp_path / "test.jsonl", [ADA, {**ADA, "id": "q2"}, ADA]), "nq")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "Question,Answer\nonly one\n", r"line 2: expected 2 columns"),
        ("a.csv", "Question,Answer\na,b,c\n", r"line 2: expected 2 columns"),
        ("a.csv", 'Question,Answer\n"open,b\n', r"cannot be read as a table: unexpected end of data"),
        ("a.csv", "", r"holds no question"),
        ("a.json", "{}", r"is no list of rows"),
        ("a.json", "[1]", r"row 1: '1' is no JSON object"),
        ("a.json", "[{]", r"cannot be read as JSON"),
        ("a.txt", "", r"ends in '\.txt'; expected one of \.jsonl"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"{name}.*{words}"):
        read_file(tmp_path / name, "bamboogle")


def test_what_is_asked_for_must_be_there(tmp_path):
    with pytest.raises(ValueError, match="no set is asked for; expected some of nq, triviaqa"):
        read_questions(tmp_path, [], "train")
    with pytest.raises(ValueError, match=r"no questions at '.*/absent'"):
        read_questions(tmp_path / "absent", ["nq"], "train")
    with pytest.raises(ValueError, match=r"holds no nq/train\.jsonl.*it holds no set"):
        read_questions(tmp_path, ["nq"], "train")
    with pytest.raises(ValueError, match="line 1: the row's set is unknown"):
        read_questions(lines(tmp_path / "test.jsonl", [ADA]), ["nq", "popqa"], "test")


def test_labels_do_not_show_when_a_question_is_printed():
    assert "mathematician" not in repr(question(ADA, "nq", "0"))


_PARTS = [
    "question",
    "answer",
    "title",
    "is_supporting",
    "ground_truth",
    "target",
    "index",
    "hops",
    "prop",
    "evidences",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "T", "#1", "2hop", "[]", '["a"]']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_PARTS), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = (
    "id _id question answer answer_aliases golden_answers possible_answers data_source metadata reward_model "
    "extra_info env_kwargs paragraphs supporting_facts supporting_titles evidences question_decomposition hops type "
    "prop subj obj"
).split()


@given(st.dictionaries(st.sampled_from(_FIELDS), JSON), st.sampled_from([{}, ADA, HOTPOT, MUSIQUE, VERL_AGENT]))
def test_any_row_is_a_question_or_a_value_error(changes, row):
    try:
        found = question({**row, **changes}, "nq", "0")
    except ValueError as error:
        assert str(error) and "\n" not in str(error)
        return
    assert found.question.endswith("?") and any(map(str.strip, found.golden_answers)) and hash(found)

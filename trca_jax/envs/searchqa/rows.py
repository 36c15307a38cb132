"""From a row of any of the formats to a question with its labels.

Source: spec/searchqa.md section 3 (FlashRAG, Search-R1, verl-agent, and the sets' own formats).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trca_jax.envs.searchqa.questions import Question

_TAG = "searchR1_"  # verl-agent puts it before the name of the set
_REFERENCE = re.compile(r"#(\d+)")


def question(row: Mapping[str, Any], source: str | None, number: str) -> Question:
    """The question of one row; what the row itself holds is read, its `metadata` included.

    source: the set, for rows that do not name it in `data_source`. number: the id of a row without one. Aliases of
    blanks are left out. Raises ValueError naming the field: no set, an empty question, no gold answer, a wrong type.
    """
    extra, given = _mapping(row, "extra_info"), _mapping(row, "env_kwargs")
    facts = {**row, **_mapping(row, "metadata")}
    source = row.get("data_source") or source
    if not isinstance(source, str):
        raise ValueError(f"the row's set is unknown: data_source is {source!r}; expected a name such as 'nq'")
    source = source.removeprefix(_TAG)
    if "index" in extra:
        number = f"{extra.get('split', 'row')}_{extra['index']}"
    name = next((str(row[key]) for key in ("id", "_id") if row.get(key) not in (None, "")), number)
    text = row.get("question") or given.get("question") or row.get("question")
    if not isinstance(text, str) or not text.strip(" \t\r\n?"):
        raise ValueError(f"question is {text!r}; expected a text that is not empty")
    text = text.strip()
    return Question(
        id=f"{source}/{name}",
        question=text if text.endswith("?") else text + "?",
        golden_answers=_golds(row, given),
        source=source,
        kind=_kind(facts, name, source),
        supporting_titles=_titles(facts),
        sub_questions=_sub_questions(facts),
        evidences=_evidences(facts),
    )


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = row.get(key)
    if found is not None and not isinstance(found, Mapping):
        raise ValueError(f"{key} is {str(found)[:60]!r}; expected an object")
    return found or {}


def _golds(row: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, ...]:
    found = row.get("golden_answers")
    if found is None and "possible_answers" in row:  # PopQA: a JSON list in a column
        try:
            found = json.loads(row["possible_answers"] or "[]")
        except (ValueError, TypeError):
            raise ValueError(f"possible_answers is {row['possible_answers']!r}; expected a JSON list") from None
    if found is None and row.get("answer") is not None:
        answers = [row["answer"]] if isinstance(row["answer"], str) else row["answer"]
        found = [*_texts(answers, "a gold answer"), *_texts(row.get("answer_aliases") or (), "a gold answer")]
    if found is None:
        truth = _mapping(row, "reward_model").get("ground_truth") or given.get("ground_truth")
        found = truth.get("target") if isinstance(truth, Mapping) else truth
    aliases = _texts([found] if isinstance(found, str) else found or (), "a gold answer")
    aliases = tuple(dict.fromkeys(alias for alias in aliases if alias.strip()))
    if not aliases:
        raise ValueError(f"gold answers are {found!r}; expected at least one text that is not empty")
    return aliases


def _kind(facts: Mapping[str, Any], name: str, source: str) -> str:
    """The set's own type of question: a type, a number of hops, a relation."""
    if isinstance(facts.get("hops"), int):
        return f"{facts['hops']}hop"
    if "paragraphs" in facts and (hops := re.match(r"\d+hop", name)):
        return hops[0]
    return str(facts.get("type") or facts.get("prop") or source)


def _titles(facts: Mapping[str, Any]) -> tuple[str, ...]:
    found = facts.get("supporting_titles")
    if found is None and "paragraphs" in facts:
        found = [
            part.get("title") for part in _objects(facts["paragraphs"], "a paragraph") if part.get("is_supporting")
        ]
    if found is None:
        pairs = facts.get("supporting_facts") or ()
        found = pairs.get("title", ()) if isinstance(pairs, Mapping) else [pair[0] for pair in _rows(pairs, 2)]
    return tuple(dict.fromkeys(_texts(found, "a supporting title")))


def _sub_questions(facts: Mapping[str, Any]) -> tuple[str, ...]:
    parts = _objects(facts.get("question_decomposition") or (), "a part of question_decomposition")
    answers = [str(part.get("answer", "")) for part in parts]

    def found(match: re.Match) -> str:
        number = int(match[1])
        return answers[number - 1] if 0 < number <= len(answers) else match[0]

    return tuple(_REFERENCE.sub(found, text) for text in _texts([part.get("question") for part in parts], "a hop"))


def _evidences(facts: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    triples = facts.get("evidences") or ()
    if "prop" in facts:  # PopQA asks for one triple
        triples = [[facts.get("subj"), facts["prop"], facts.get("obj") or facts.get("o_wiki_title")]]
    return tuple(tuple(_texts(triple, "a part of the evidences")) for triple in _rows(triples, 3))


def _texts(found: Any, what: str) -> Sequence[str]:
    if not isinstance(found, list | tuple):
        raise ValueError(f"{what} should stand in a list, but {str(found)[:60]!r} is there")
    for text in found:
        if not isinstance(text, str):
            raise ValueError(f"{what} is {str(text)[:60]!r}; expected a text")
    return found


def _objects(found: Any, what: str) -> Sequence[Mapping[str, Any]]:
    if not isinstance(found, list | tuple) or not all(isinstance(part, Mapping) for part in found):
        raise ValueError(f"{what} is no object in {str(found)[:60]!r}")
    return found


def _rows(found: Any, length: int) -> Sequence[Sequence[Any]]:
    if isinstance(found, list | tuple) and all(
        isinstance(part, list | tuple) and len(part) == length for part in found
    ):
        return found
    raise ValueError(f"a list of lists of {length} is expected, not {str(found)[:60]!r}")

"""The record of one question with its labels."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Question:
    """One question of a data set.

    id: `source/id of the row`, unique over all sets. question: stripped, with a question mark at its end.
    source: the set, such as "nq". kind: the set's own type of question ("bridge", "2hop", ...), else the set's name.

    Labels, for scoring and for learning alone; no prompt, binder or operator may see them:
    golden_answers: every accepted alias. supporting_titles: of the passages that hold the evidence.
    sub_questions: the single-hop questions that lead to the answer, in order, found answers put in.
    evidences: (subject, relation, object) triples.

    distractors: of a question that is played with noise (`noise.noisy_tasks`): what is searched in place of the n-th
    query, "" for the query itself.
    """

    id: str
    question: str
    golden_answers: tuple[str, ...] = field(repr=False)
    source: str
    kind: str
    supporting_titles: tuple[str, ...] = field(default=(), repr=False)
    sub_questions: tuple[str, ...] = field(default=(), repr=False)
    evidences: tuple[tuple[str, str, str], ...] = field(default=(), repr=False)
    distractors: tuple[str, ...] = field(default=(), repr=False)

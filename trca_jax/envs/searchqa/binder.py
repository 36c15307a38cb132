"""Read a question into what it is about and what it asks: fixed rules over its text, no model and no label.

Source: spec/searchqa.md section 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trca_jax.envs.searchqa.entities import choices, entities
from trca_jax.envs.searchqa.names import Names, bare, key
from trca_jax.envs.searchqa.relations import answer_type, relations
from trca_jax.rubrics.schema import BindingField

FIELDS = (
    BindingField("entities", "symbols", "Keys of the things that the question names.", width=10),
    BindingField("relation_total", "number", "How many relations the question asks for, if any is known."),
    BindingField("answer_type", "symbol", "Kind of the answer: yes-no, date, number, person, place or name."),
)


@dataclass(frozen=True)
class Reading:
    """What a question says. entities: keys of the things it names, without qualifiers, the surest first. relations: by
    the names of `relations`. answer_type: as `relations.answer_type`. choices: keys of the things to choose between.
    text: the question as it stands; question: its key."""

    text: str
    question: str
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    answer_type: str | None
    choices: tuple[str, ...]


def read_question(question: str, names: Names) -> Reading:
    """What any text asks; never raises.

    >>> reading = read_question("Who is older, Ada Moss or Wim Garstad?", Names())
    >>> reading.entities, reading.choices
    (('ada moss', 'wim garstad'), ('ada moss', 'wim garstad'))
    """
    found = tuple(dict.fromkeys(key(bare(name)) for name in entities(question, names)))
    kind = answer_type(question)
    pair = choices(question) if " or " in question else None
    chosen = tuple(key(bare(name)) for name in pair) if pair else ()
    return Reading(question, key(question), found, relations(question), kind, chosen)


def binding(reading: Reading) -> dict[str, Any]:
    """The binding fields of a reading; a question whose things are not known binds no operator about them."""
    return {
        "entities": reading.entities or None,
        "relation_total": len(reading.relations) or None,
        "answer_type": reading.answer_type,
    }

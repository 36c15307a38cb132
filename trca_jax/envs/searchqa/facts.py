"""Facts of SearchQA transitions: what each action asks for, and what the documents say for the first time.

Gold answers, supporting titles and evidences are not known here. Source: spec/searchqa.md sections 6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from trca_jax.envs.searchqa.actions import ANSWER, NOTHING, SEARCH, project
from trca_jax.envs.searchqa.binder import Reading
from trca_jax.envs.searchqa.names import key
from trca_jax.envs.searchqa.relations import YES_NO, fits, says
from trca_jax.envs.searchqa.texts import read_information
from trca_jax.envs.searchqa.tracker import EMPTY, FIRST, INVALID, REFINED, REPEATED, Tracker
from trca_jax.rubrics.schema import Fact

FACTS = (
    Fact("parsed", "flag", "The agent's output held a search or an answer."),
    Fact("formed", "flag", "It held exactly one of them, in its tags."),
    Fact("tool", "symbol", "What was executed: 'search', 'answer' or 'nothing'."),
    Fact("blank", "flag", "The query holds no word."),
    Fact("overlong", "flag", "The query has more than 64 words."),
    Fact("repeated", "flag", "The same query was made before, or one of nearly the same words."),
    Fact("ran", "flag", "The search was carried out; false on the last step."),
    Fact("fresh", "number", "Documents found that were not found before."),
    Fact("queried", "symbols", "Entities of the question that a query names for the first time.", width=10),
    Fact("relates", "flag", "The query has a word for a relation that the question asks for."),
    Fact("followed", "number", "Names from earlier documents that a query names for the first time."),
    Fact("named", "symbols", "Entities and followed names that documents name for the first time.", width=16),
    Fact("related", "symbols", "The same, in a sentence with a word for a relation asked for.", width=16),
    Fact("typed", "symbols", "The same, in a sentence with a text of the answer's type.", width=16),
    Fact("beside", "number", "New names in a sentence about an entity or a followed name."),
    Fact("retrievals", "number", "Searches carried out before the action."),
    Fact("searching", "flag", "Before the action, documents had not told of every relation that is asked for."),
    Fact(
        "supported", "flag", "The answer stands in a document; for a choice, it is one of the two; yes and no: unknown."
    ),
    Fact(
        "witnessed", "flag", "It stands in a sentence with a word for a relation asked for, where relations are known."
    ),
    Fact("echoed", "flag", "The answer is a name from the question, which does not ask for a choice."),
    Fact("misfit", "flag", "The answer is certainly not of the type asked for."),
)
_UNKNOWN = dict.fromkeys(fact.name for fact in FACTS)
_QUIET = {fact.name: {"flag": False, "number": 0, "symbols": (), "symbol": "nothing"}[fact.kind] for fact in FACTS}
_OVERLONG = 64  # words


class SearchqaAdapter:
    """Follows one episode (protocol `Adapter`). known: what its texts have told so far, for scripted play."""

    def __init__(self, reading: Reading) -> None:
        self.known = Tracker(reading)
        self._context = self.known.context()

    def context(self) -> Mapping[str, Hashable]:
        return self._context

    def transition(self, action: str | None, observation: str, admissible: Sequence[str]) -> Mapping[str, Any]:
        known, done = self.known, project(action or "")
        facts = dict(_QUIET)
        facts.update(parsed=done.kind != NOTHING, formed=done.valid, tool=done.kind or "nothing",
                     retrievals=len(known.searches), searching=known.searching())  # fmt: skip
        known.tool = done.kind or "nothing"
        if done.kind == SEARCH:
            self._search(done.argument, observation, facts)
        elif done.kind == ANSWER:
            known.answered = True
            self._answer(done.argument, facts)
        if done.kind == NOTHING or not done.valid:
            known.state = INVALID
        self._context = known.context()
        return facts

    def _search(self, query: str, observation: str, facts: dict) -> None:
        known = self.known
        words = key(query).split()
        facts["blank"], facts["overlong"] = not words, len(words) > _OVERLONG
        facts["repeated"] = known.is_repeated(query)
        facts["relates"] = says(query, known.reading.relations)
        entities, bridges = known.names_in(query)
        facts["queried"] = tuple(name for name in entities if name not in known.queried)
        facts["followed"] = len(set(bridges) - known.followed)
        known.queried.update(entities)
        known.followed.update(bridges)
        documents = read_information(observation)
        if documents is None:
            facts["ran"] = False
            facts.update(_UNREAD if observation else {})
            known.state = INVALID
            return
        facts["ran"] = True
        facts["fresh"] = len(set(documents) - known.documents.keys())
        known.state = REPEATED if facts["repeated"] else REFINED if known.searches else FIRST
        if not documents:
            known.state = EMPTY
        known.searches.append((query, documents))
        found = known.read(documents)
        facts.update({name: found[name] for name in ("named", "related", "typed")}, beside=len(found["beside"]))

    def _answer(self, answer: str, facts: dict) -> None:
        known, reading = self.known, self.known.reading
        short = key(answer)
        facts["misfit"] = reading.answer_type is not None and fits(answer, reading.answer_type) is False
        facts["echoed"] = not reading.choices and short in reading.entities
        if reading.answer_type == YES_NO or short in ("yes", "no"):
            facts["supported"] = facts["witnessed"] = None
            return
        if reading.choices:
            facts["supported"] = facts["witnessed"] = short in reading.choices
            return
        holding = list(known.holds(answer))
        facts["supported"] = bool(holding)
        told = not reading.relations or any(says(sentence, reading.relations) for sentence in holding)
        facts["witnessed"] = bool(holding) and told


_UNREAD = dict.fromkeys(("ran", "fresh", "named", "related", "typed", "beside"))

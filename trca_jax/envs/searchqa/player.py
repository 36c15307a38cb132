"""Scripted play for demonstrations: a reader that knows no more than the adapter, and noise that looks around."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from random import Random

from trca_jax.envs.searchqa.actions import ANSWER, SEARCH, project
from trca_jax.envs.searchqa.commands import command
from trca_jax.envs.searchqa.facts import SearchqaAdapter
from trca_jax.envs.searchqa.names import bare, key

_NAME = r"((?:[A-Z]\w+)(?: [A-Z]\w+)*)"
_WORK = r"the (?:film|novel|song) (.+?)"
# how a question names something by another thing, and the relation between them
_INNER = (
    (rf"the (?:director|author|singer) of {_WORK}(?= born| study|$)", "maker"),
    (rf"the company that (?:released|published) {_WORK}(?=$)", "company"),
    (r"the city where (.+?) was born", "birth"),
    (r"the college where (.+?) studied", "college"),
    (r"the spouse of (.+?)(?= born|$)", "spouse"),
)
_OUTER = (
    (rf"Who (?:directed|wrote|sang) {_WORK}$", "maker"),
    (rf"When was {_WORK} (?:released|published)$", "year"),
    (rf"Which company (?:released|published) {_WORK}$", "company"),
    (r"In which country is (.+)$", "country"),
    (r"Who is the mayor of (.+)$", "mayor"),
    (r"On which river does (.+) lie$", "river"),
    (r"(?:In which city|Where) was (.+) born$", "birth"),
    (r"In which city is (.+)$", "place"),
    (r"When was (.+) founded$", "founded"),
    (r"When was (.+) born$", "born"),
    (r"Who founded (.+)$", "founder"),
    (r"At which college did (.+) study$", "college"),
    (r"Who married (.+)$", "spouse"),
)
# how passages say it
_SAID = {
    "maker": rf"(?:directed|written|sung) by {_NAME}",
    "company": rf"(?:released|published) by {_NAME}",
    "year": r"(?:released|published) by .* in (\d{4})",
    "birth": rf"born in {_NAME}",
    "born": r"born in .* in (\d{4})",
    "college": rf"studied at {_NAME}",
    "spouse": rf"married {_NAME}",
    "founder": rf"founded by {_NAME}",
    "founded": r"founded .*in (\d{4})",
    "country": rf"city in {_NAME}",
    "mayor": rf"mayor of .* is {_NAME}",
    "river": rf"river {_NAME}",
    "place": rf"is a (?!city).* in {_NAME}",
}


class Reader:
    """Searches for what a question is about, reads what the documents say of it, and so hop by hop to the answer.

    It reads the frames of the generated world's questions and passages; of other questions it searches for the names
    and answers with something that it has seen. Deterministic under `rng`.
    """

    def __init__(self, adapter: SearchqaAdapter, rng: Random) -> None:
        self._known, self._rng = adapter.known, rng

    def act(self, admissible: Sequence[str]) -> str:
        """The next command: one of those on offer, or any where none are listed."""
        for kind, argument in self._wishes():
            if not admissible:
                return command(kind, argument)
            for offer in admissible:
                done = project(offer)
                if done.kind == kind and key(done.argument) == key(argument):
                    return offer
        return wander(self._rng, admissible)

    def _wishes(self) -> Iterable[tuple[str, str]]:
        known, question = self._known, self._known.reading.text.rstrip("? ")
        for pattern, relation in _INNER:
            if match := re.search(pattern, question):
                found = self._read(match[1], relation)
                if found is None:
                    yield SEARCH, match[1]
                    break
                question = question.replace(match[0], found)
        for pattern, relation in _OUTER:
            if match := re.match(pattern, question):
                found = self._read(match[1], relation)
                yield (ANSWER, found) if found else (SEARCH, match[1])
        searched = {key(query) for query, _ in known.searches}
        yield from ((SEARCH, name) for name in known.reading.entities if name not in searched)
        yield from ((ANSWER, name) for name in reversed(known.bridges.values()))

    def _read(self, subject: str, relation: str) -> str | None:
        for document in self._known.documents:
            if key(bare(document.title)) == key(subject) and (said := re.search(_SAID[relation], document.text)):
                return said[1]
        return None


class Demonstrator:
    """Noisy demonstrations: at each step the reader with probability `share`, else `wander`."""

    def __init__(self, adapter: SearchqaAdapter, rng: Random, share: float) -> None:
        self._reader = Reader(adapter, rng)
        self._rng, self._share = rng, share

    def act(self, admissible: Sequence[str]) -> str:
        if not admissible or self._rng.random() < self._share:
            return self._reader.act(admissible)
        return wander(self._rng, admissible)


def wander(rng: Random, admissible: Sequence[str]) -> str:
    """Noise that looks around: two in three commands are searches, where both are on offer.

    Raises ValueError if there is no command at all.
    """
    if not admissible:
        raise ValueError("no admissible command; the episode is over or the environment lists none")
    searches = [offer for offer in admissible if project(offer).kind == SEARCH]
    answers = [offer for offer in admissible if project(offer).kind != SEARCH]
    return rng.choice(searches if searches and (not answers or rng.random() < 2 / 3) else answers)

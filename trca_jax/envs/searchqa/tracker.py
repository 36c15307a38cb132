"""What is known of a SearchQA episode at one moment, by its texts alone."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence

from trca_jax.envs.searchqa.binder import Reading
from trca_jax.envs.searchqa.names import bare, key, mentions, names_in
from trca_jax.envs.searchqa.relations import NAMED, VAGUE, fits, says
from trca_jax.envs.searchqa.texts import Document

CONTEXTS = ("tool", "retrievals", "queried", "covered", "answered", "query", "searching")
NONE, FIRST, REFINED, REPEATED, EMPTY, INVALID = "none", "first", "refined", "repeated", "empty result", "invalid"
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"“'(]?[A-Z0-9])")
_ALIKE = 0.9  # Jaccard index of two queries' words from which on they count as the same


class Tracker:
    """All that is known now; `facts.SearchqaAdapter` keeps it.

    searches: queries that brought results, with their documents. named, related, typed: entities and followed bridges
    that a document names, names with a word for a relation asked for, or names with a text of the answer's type. told:
    relations asked for that a sentence about one of them has a word for.
    bridges: keys of names in documents that the question does not hold, as the documents write them. beside: those that
    stood by a known thing. queried: entities, followed: bridges that a search named after they were seen. tool: of the
    last action. state: of the last query.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.searches: list[tuple[str, tuple[Document, ...]]] = []
        self.documents: dict[Document, None] = {}
        self.named: set[str] = set()
        self.related: set[str] = set()
        self.typed: set[str] = set()
        self.told: set[str] = set()
        self.bridges: dict[str, str] = {}
        self.beside: set[str] = set()
        self.queried: set[str] = set()
        self.followed: set[str] = set()
        self.tool, self.state, self.answered = NONE, NONE, False

    def things(self) -> tuple[str, ...]:
        """What sentences may be about: the question's entities and the bridges that were followed."""
        return (*self.reading.entities, *sorted(self.followed))

    def is_repeated(self, query: str) -> bool:
        """Whether a query was made before, or one of nearly the same words."""
        words = set(key(query).split())
        for made, _ in self.searches:
            other = set(key(made).split())
            if words == other or len(words & other) >= _ALIKE * len(words | other):
                return True
        return False

    def names_in(self, query: str) -> tuple[list[str], list[str]]:
        """Entities of the question, and bridges seen so far, that a query names."""
        text = key(query)
        entities = [name for name in self.reading.entities if mentions(text, name)]
        return entities, [name for name in self.bridges if mentions(text, name)]

    def read(self, documents: Sequence[Document]) -> dict[str, tuple[str, ...]]:
        """Takes documents in; what they say for the first time, by the names of the attributes above."""
        before = {name: set(getattr(self, name)) for name in ("named", "related", "typed", "beside")}
        for document in documents:
            self._read(document)
        self.documents.update(dict.fromkeys(documents))
        return {name: tuple(sorted(getattr(self, name) - old)) for name, old in before.items()}

    def _read(self, document: Document) -> None:
        title, reading = key(bare(document.title)), self.reading
        self._note([bare(document.title)])
        for sentence in sentences(document.text):
            text, found = key(sentence), names_in(sentence)
            about = {name for name in self.things() if name == title or mentions(text, name)}
            self.named |= about
            if about and (told := [name for name in reading.relations if says(sentence, (name,))]):
                self.related |= about
                self.told.update(told)
            new = self._note(found)
            if about and (new - about if reading.answer_type in NAMED else self._fits(sentence)):
                self.typed |= about
            if about:
                self.beside |= new

    def _fits(self, sentence: str) -> bool:
        kind = self.reading.answer_type
        return kind is not None and fits(sentence, kind) is True

    def _note(self, names: Sequence[str]) -> set[str]:
        """Keeps names that the question does not hold; the keys of all those that it does not."""
        found = {short: name for name in names if (short := key(name)) and not mentions(self.reading.question, short)}
        for short, name in found.items():
            if len(short) > 3:
                self.bridges.setdefault(short, name)
        return set(found)

    def searching(self) -> bool:
        """Whether documents have yet to tell of a relation asked for, and of each thing if the question is a choice.
        Where no relation is sure: to hold a text of the answer's type; where the question names nothing: to come."""
        if not self.reading.entities:
            return not self.documents
        sure = set(self.reading.relations) - {VAGUE}
        if not sure:
            return not self.typed
        return not (sure <= self.told and self.related.issuperset(self.reading.choices))

    def holds(self, answer: str) -> Iterator[str]:
        """The sentences of all documents that hold an answer as whole words; titles count as sentences."""
        short = key(answer)
        for document in self.documents:
            for sentence in (document.title, *sentences(document.text)):
                if mentions(key(sentence), short):
                    yield sentence

    def context(self) -> dict[str, Hashable]:
        """What is known, by the names of CONTEXTS. covered: whether documents named anything, said a relation of it,
        held the answer's type beside it, and named a bridge beside it. query: how the last query went. The others are
        described above."""
        reading = self.reading
        queried = tuple(name in self.queried for name in reading.entities)
        covered = tuple(map(len, (self.named, self.related, self.typed))), bool(self.beside)
        counts = len(self.searches), (queried, len(self.followed)), covered
        return dict(zip(CONTEXTS, (self.tool, *counts, self.answered, self.state, self.searching()), strict=True))


def sentences(text: str) -> list[str]:
    """A text's sentences, roughly.

    >>> sentences("Ada Moss was born in 1901. She wrote.")
    ['Ada Moss was born in 1901.', 'She wrote.']
    """
    return _SENTENCE.split(text)

"""What a search engine is to the rest of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Passage:
    """One retrieved passage. id: of the corpus row. text: without the title. score: higher is better."""

    id: str
    title: str
    text: str
    score: float


@dataclass(frozen=True)
class RetrievalError:
    """Stands where a query's passages would stand if the search engine could not be asked.

    A value, not an exception: the other queries of the call keep their passages. It says nothing about the query, so
    nothing may be concluded from it. reason: in words, for logs; no evidence text.
    """

    reason: str


class Retriever(Protocol):
    """A search engine over passages."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | RetrievalError]:
        """One entry a query, in their order: at most k passages, best first; none where nothing matches.

        Equal queries get equal entries. Raises ValueError if k < 1 or the engine is set up wrongly.
        """

"""Names in text: which words an environment's passages write with a capital, its titles, and spans of names.

Knowledge of the environment's own corpus, which an agent may read as well; nothing here knows questions or answers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from trca_jax.envs.searchqa.retrieval import Passage

# Lower-case words inside names; those of JOINTS as often part two names.
JOINTS = frozenset("and & in on at for to with from by".split())
CONNECTORS = JOINTS | frozenset(
    "of the a an de del della di da do dos das du des la le les el los las van von der den ter y e et al bin ibn ben "
    "und is are no my me not upon into s t".split()
)
LEADERS = frozenset(
    (
        "what which who whom whose when where why how is are was were do does did has have had can could will would "
        "should may might in on at of for from by to with as after before during since until between among about the "
        "a an this that these those it its he she they we you i his her their our your my there here and or but if "
        "while although however both name all one some many most other under over than also not name such"
    ).split()
)
_WORD = re.compile(r"[^\W_][\w'’.\-–&/]*|&")
_INNER = re.compile(r"(?<=[a-z,;] )[A-Za-z][a-z]+\b|(?<=[a-z,;] )[A-Z]\w*")
_QUALIFIER = re.compile(r"\s*\([^()]*\)$")
_SENTENCE_END = re.compile(r"[.!?:]['\"”’)]*\s+$")


def key(text: str) -> str:
    """A text for comparison by whole words: lower case, no punctuation, possessives as if they were not there.

    >>> key("Ada Lovelace's  “Notes” (1843)")
    'ada lovelace notes 1843'
    """
    text = re.sub(r"['’]s\b", "", text.lower())
    return " ".join(re.findall(r"\w+", text.replace("'", "").replace("’", "")))


def mentions(text_key: str, name_key: str) -> bool:
    """Whether a text has a name as whole words; both are keys."""
    return bool(name_key) and f" {name_key} " in f" {text_key} "


def bare(title: str) -> str:
    """A title without the qualifier in parentheses behind it."""
    return _QUALIFIER.sub("", title)


@dataclass(frozen=True)
class Names:
    """What the passages of a corpus say about names.

    titles: keys of titles, with and without qualifiers. phrases: those, and all stretches of two words and more in
    them. written: for words met inside sentences, in lower case, how
    often they begin with a capital and how often they do not.
    """

    titles: frozenset[str] = frozenset()
    phrases: frozenset[str] = field(default=frozenset(), repr=False)
    written: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> Names:
        titles: set[str] = {""}
        large: Counter[str] = Counter()
        small: Counter[str] = Counter()
        for passage in passages:
            titles.update((key(passage.title), key(bare(passage.title))))
            for word in _INNER.findall(passage.text):
                (small if word.islower() else large)[word.lower()] += 1
        words = {word: (large[word], small[word]) for word in large.keys() | small.keys()}
        phrases = titles | {part for title in titles for part in _parts(title.split())}
        return cls(frozenset(titles - {""}), frozenset(phrases - {""}), words)

    def share(self, word: str) -> float | None:
        """How often a word begins with a capital, from 0 to 1; None if it was not met three times."""
        large, small = self.written.get(word.lower(), (0, 0))
        return large / (large + small) if large + small >= 3 else None

    def is_name(self, word: str) -> bool:
        """Whether a word written small is a name more often than not."""
        share = self.share(word)
        return share is not None and share > 0.7

    def is_telling(self, word: str) -> bool:
        """Whether a word written small says much: it is a name, or seldom met and often part of one."""
        share = self.share(word)
        return share is not None and (share > 0.7 or (share > 0.3 and sum(self.written[word.lower()]) < 100))


def _parts(words: list[str]) -> Iterator[str]:
    for size in range(2, min(len(words), 10)):
        for a in range(len(words) - size + 1):
            yield " ".join(words[a : a + size])


@dataclass(frozen=True)
class Word:
    """A word of a text: as it stands, and its characters [start, stop)."""

    text: str
    start: int
    stop: int

    @property
    def lower(self) -> str:
        return self.text.lower()


def words_of(text: str) -> list[Word]:
    """The words of a text, without full stops at their ends unless they are initials or abbreviations."""
    found = []
    for match in _WORD.finditer(text):
        word = match[0].rstrip("'’-–&/") or match[0]
        if word.endswith(".") and not (len(word) == 2 or word[:-1].count(".") or word in _TITLES):
            word = word.rstrip(".")
        if word:
            found.append(Word(word, match.start(), match.start() + len(word)))
    return found


_TITLES = frozenset(("Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Jr.", "Sr.", "Mt.", "Ft.", "vs.", "Vol.", "No.", "Inc."))


def capital(word: Word) -> bool:
    """Whether a word is written as names are: a capital or digit first, or a capital inside ("iPhone")."""
    return word.text[0].isupper() or word.text[0].isdigit() or any(char.isupper() for char in word.text[1:])


def runs(text: str, words: Sequence[Word], large: Sequence[bool], joints: bool) -> list[tuple[int, int]]:
    """Spans of words [first, last] that begin and end large, with connectors inside.

    joints: whether words that as often part two names count as connectors. Only blanks, an opening quotation mark or a
    parenthesis may stand between the words of a span.
    """
    found: list[tuple[int, int]] = []
    first = last = -1
    for i, word in enumerate(words):
        apart = i > 0 and _PAUSE.search(text[words[i - 1].stop : word.start]) is not None
        if first >= 0 and apart:
            found.append((first, last))
            first = -1
        if large[i]:
            first, last = (i if first < 0 else first), i
        elif first >= 0 and (word.lower not in CONNECTORS or i - last > 3 or (word.lower in JOINTS and not joints)):
            found.append((first, last))
            first = -1
    return [*found, (first, last)] if first >= 0 else found


_PAUSE = re.compile(r"[,;:.!?\"”“)\]–—]")


def names_in(text: str) -> tuple[str, ...]:
    """Capitalised spans of running text, in order and once each; a sentence's first word counts unless it is a common
    one. Numbers alone are none.

    >>> names_in("The Tarn is a river. It was crossed by Ada Moss in 1901, near Castle of Wind.")
    ('Tarn', 'Ada Moss', 'Castle of Wind')
    """
    words = words_of(text)
    large = [capital(word) and not (word.lower in LEADERS or word.text.isdigit()) for word in words]
    found = (text[words[a].start : words[b].stop] for a, b in runs(text, words, large, joints=False))
    return tuple(dict.fromkeys(name for name in found if any(char.isalpha() for char in name)))

"""Which things a question is about, by fixed rules over its text and the names of the environment's corpus.

No model, and nothing of the data set's labels. Source: spec/searchqa.md section 6.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from trca_jax.envs.searchqa.names import (
    CONNECTORS,
    JOINTS,
    LEADERS,
    Names,
    Word,
    bare,
    capital,
    key,
    mentions,
    runs,
    words_of,
)

_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|‘([^’]+)’(?!\w)|(?<!\w)'([^']+)'(?!\w)")
_KINDS = (
    "film|movie|song|album|single|novel|book|play|series|show|musical|opera|band|company|magazine|video game|game|"
    "documentary|poem|painting"
)
_TAIL = re.compile(rf"\b(?:of|for|by|from|in) (?:the )?(?:(?:{_KINDS}) )?(?=[\"'“‘(]?[A-Z0-9])")
_OF_KIND = re.compile(rf"\b(?:{_KINDS}) (?=[\"'“‘]?[A-Z0-9])")
_WHOLE = tuple(
    re.compile(rf"^{pattern}$", re.IGNORECASE)
    for pattern in (
        r"what (?:genre|colou?r|sport|religion) (?:is|was|does|did) (.+?)(?: play(?:ed)?| practi[cs]e| follow)?",
        r"what (?:is|was) (.+?) (?:the capital of|famous for|known for|named after)",
        r"(?:what|who) (?:is|was) (.+?)['’]s? [\w-]+(?: \w+)?",
        r"(?:in )?(?:what|which) (?:city|country|town|place|year|state) (?:is|was|did) (.+?)"
        r"(?: born| located| released| founded| die| in)?",
        r"(?:where|when) (?:is|was|were|did) (.+?) (?:born|located|released|published|founded|die|died|buried|married)",
    )
)
_CHOICE = re.compile(
    r"(?:[,:;]|\bbetween\b|\bof\b)\s+(?:the )?(?P<a>[^,:;]*?(?:, [^,:;]*?)?),? (?:or|and) (?P<b>[^:;]+)$"
)
_ARE_BOTH = re.compile(
    rf"^(?:are|were|is|was|do|does|did|have|has)(?: the)?(?: both)?(?: the)?(?: (?:{_KINDS}|directors?|director of)s?)*"
    r" (?P<a>.+?),? and (?P<b>.+?),? (?:both|all|from|located|of the|born|have|has|share|the same|originat|come|based|"
    r"in the|a |an |american|fought|directed|published|die|dogs?|types?|species)\b",
    re.IGNORECASE,
)
_VERBS = "is|was|were|born|dies?|died|study|studied|graduate|from|work|live|play|played|for|have"
_OWNED = re.compile(rf" ?['’]s?(?: [a-z][\w-]*){{0,4}}$|(?: (?:{_VERBS}))+$")
_WEAK = re.compile(
    r"^(?:\w+(?:ish|ese|ian|ean|ican)|german|french|greek|dutch|roman|swiss|(?:january|february|march|april|may|june|july|"
    r"august|september|october|november|december)\b.*)$"
)
_BROAD = frozenset(
    ("us", "u s", "usa", "uk", "america", "europe", "united states", "world war i", "world war ii", "filipino")
)
_GENERIC = frozenset(
    (
        "county river lake street university college school league institute church president king queen island "
        "stadium city state governor emperor award awards lottery festival staff author captain"
    ).split()
)
_QUALIFIED = re.compile(r"(.+?) *\(([^()]+)\)$")
_KIND_WORDS = re.compile(rf"\b(?:{_KINDS})s?\b", re.IGNORECASE)
_ASKING = frozenset("what which who whom whose when where why how that whether".split())
_MOST = 10  # entities of a question
_LONGEST = 1000  # characters of a question that are read


def entities(question: str, names: Names) -> tuple[str, ...]:
    """The things that a question names, the surest first, at most ten; without any, its most telling words.

    Where the corpus knows a title for a whole name its parts are left out; where it does not, "A and B" and "X, Y" give
    the parts as well.

    >>> entities("Who is the father of Margaret Of Holland, Countess Of Henneberg?", Names())[0]
    'Margaret Of Holland, Countess Of Henneberg'
    """
    text = _plain(question)
    words = words_of(text)
    found: dict[str, str] = {}

    def add(names_: Iterable[str]) -> None:
        for name in names_:
            name = _trim(name)
            for part in (name, *_unqualified(name)):
                if _counts(part, names):
                    found.setdefault(key(part), part)

    quoted = [name for match in _QUOTED.finditer(text) for name in match.groups() if name]
    add(quoted)
    add(_by_frame(text))
    spans = sorted({*_titles(words, names), *_runs(text, words, names)})
    whole = [span for span in spans if not _inside(span, spans)]
    known = [span for span in spans if _key(text, words, span) in names.titles]
    sure = [span for span in known if not _inside(span, known)]
    framed = [name for name in found if name in names.titles]
    for span in (*whole, *sure, *spans):
        part = any(mentions(name, _key(text, words, span)) for name in framed)
        if not part and not _inside(span, sure):
            add([text[words[span[0]].start : words[span[1]].stop]])
    if not any(map(capital, words[1:])) or all(name in _BROAD or _WEAK.match(name) for name in found):
        add(_telling(text, words, names))
    return tuple(found.values())[:_MOST]


def _inside(span: tuple[int, int], spans: Iterable[tuple[int, int]]) -> bool:
    """Whether a span is a part of another one."""
    return any(a <= span[0] and span[1] <= b and (a, b) != span for a, b in spans)


def choices(question: str) -> tuple[str, str] | None:
    """The two things that a question asks to choose between, or asks a common trait of.

    >>> choices("Which film came out earlier, She Shall Have Music or That Devil, Bateese?")
    ('She Shall Have Music', 'That Devil, Bateese')
    """
    text = _plain(question)
    match = _ARE_BOTH.search(text)
    if not match and " or " in text:
        match = _CHOICE.search(text)
    if not match:
        return None
    pair = tuple(_trim(match[side]) for side in ("a", "b"))
    return pair if all(pair) else None


def _plain(question: str) -> str:
    return " ".join(question[:_LONGEST].split()).rstrip("? ").strip()


def _unqualified(name: str) -> Iterator[str]:
    """A name without what stands in parentheses behind it, and a name in there, such as that of "(Tove Lo Song)"."""
    if match := _QUALIFIED.match(name):
        yield match[1]
        if (inner := _KIND_WORDS.sub("", match[2]).strip()) != match[2] and re.search(r"[^\W\d]", inner):
            yield inner


def _by_frame(text: str) -> Iterator[str]:
    """Names that the question's frame marks off as a whole, whatever small words and commas they hold."""
    pair = choices(text)
    if pair:
        yield from (name for name in pair if any(map(capital, words_of(name)[:1])) and not _asks(name))
        return
    for pattern in (_TAIL, _OF_KIND):
        for match in pattern.finditer(text):
            tail = _OWNED.sub("", text[match.end() :])
            if _is_name(tail):
                yield tail
                break
    for pattern in _WHOLE:
        match = pattern.match(text)
        if match and _is_name(name := _OWNED.sub("", match[1])):
            yield name
            break


def _asks(name: str) -> bool:
    return any(word.text in _ASKING for word in words_of(name))


def _is_name(text: str) -> bool:
    """Whether a stretch to the end of the question is one name: it begins large, is mostly large, and asks nothing."""
    words = words_of(text)
    if not words or not capital(words[0]) or _asks(text):
        return False
    small = [word for word in words if not capital(word)]
    strange = [word for word in small if word.lower not in CONNECTORS]
    return len(strange) <= (len(words) - len(small)) / 3 and len(words) <= 14 and not re.search(r"[\"“”]", text)


def _runs(text: str, words: list[Word], names: Names) -> Iterator[tuple[int, int]]:
    """Spans of words written large, or which the corpus writes large, and their parts."""
    cased = [capital(word) for word in words]
    if words:
        cased[0] = cased[0] and (words[0].lower not in LEADERS)
    sure = 0.95 if any(cased) else 0.7
    large = [
        cased[i] or (word.lower not in LEADERS | CONNECTORS | _GENERIC and (names.share(word.lower) or 0) > sure)
        for i, word in enumerate(words)
    ]
    for joints in (False, True):
        found = runs(text, words, large, joints)
        yield from found
        for (a, b), (c, d) in pairwise(found):  # over a comma: "X, Earl of Y"
            if c == b + 1 and "," in text[words[b].stop : words[c].start]:
                yield a, d


def _titles(words: list[Word], names: Names) -> Iterator[tuple[int, int]]:
    """Spans of words that are a title of the corpus, the longest first and none inside another."""
    keys = [key(word.text) for word in words]
    cased = any(map(capital, words[1:]))
    taken = [False] * len(words)
    for size in range(min(12, len(words)), 0, -1):
        for a in range(len(words) - size + 1):
            span = range(a, a + size)
            joined = " ".join(" ".join(keys[a : a + size]).split())
            if (
                joined in names.phrases
                and not any(taken[i] for i in span)
                and _is_title(words[a : a + size], a, cased, names)
            ):
                for i in span:
                    taken[i] = True
                yield a, a + size - 1


def _is_title(words: list[Word], at: int, cased: bool, names: Names) -> bool:
    """Whether words that equal a title are meant as one, and are no everyday words that happen to equal it."""
    content = [word for word in words if word.lower not in LEADERS | CONNECTORS | _ASKING]
    large = [word for i, word in enumerate(words) if capital(word) and (i or at)]
    telling = [word for word in content if names.is_telling(word.lower)]
    shown = len(large) * 2 >= len(words)
    whole = key(" ".join(word.text for word in words)) in names.titles
    if not content or not (whole or (words[0] in content and words[-1] in content)):
        return False
    if shown or not whole:
        return shown or bool(telling) or (len(words) > 2 and not cased)
    if len(words) == 1:
        return bool(telling) and len(words[0].text) > 3 and words[0].lower not in _GENERIC
    if words[0].lower in _ASKING:
        return len(words) > 4 and len(content) > 1
    if len(content) == 1:
        return len(words) > 2 and words[0].lower not in CONNECTORS
    return len(words) > 2 or bool(telling)


def _telling(text: str, words: list[Word], names: Names) -> Iterator[str]:
    """The run of content words that holds the rarest of them, for questions without a name."""
    content = [word.lower not in LEADERS | CONNECTORS | _FRAME | _GENERIC and word.text.isalpha() for word in words]
    groups: list[tuple[int, int]] = []
    for i, is_content in enumerate(content):
        if is_content:
            apart = not groups or groups[-1][1] != i - 1 or _breaks(text, words, i)
            groups = [*groups, (i, i)] if apart else [*groups[:-1], (groups[-1][0], i)]

    def rarity(group: tuple[int, int]) -> tuple[int, int]:
        counts = [sum(names.written.get(words[i].lower, (0, 0))) for i in range(group[0], group[1] + 1)]
        return min(counts), group[0]

    if groups:
        a, b = min(groups, key=rarity)
        yield text[words[a].start : words[b].stop]


def _breaks(text: str, words: list[Word], i: int) -> bool:
    return re.search(r"[,;:]", text[words[i - 1].stop : words[i].start]) is not None


_FRAME = frozenset(
    (
        "much many long old tall far come came comes called known play plays played start started end make made get go "
        "goes say said take took give year name time last located live lived born die died want mean part kind type "
        "someone people person been being be won win wins write wrote written sang sings sing he's what's who's when's "
        "where's first best new next begin begins began occur occurs used use uses found discovered become became "
        "captured built change changed develop discover happen happens happened following released chosen "
        "official officially main common difference types number amount problem purpose didn't don't doesn't"
    ).split()
)


def _key(text: str, words: list[Word], span: tuple[int, int]) -> str:
    return key(text[words[span[0]].start : words[span[1]].stop])


def _trim(name: str) -> str:
    """Without quotation marks and stops around, a possessive behind, and a small article in front."""
    name = name.strip(' ,;:.!"“”')
    name = re.sub(r"['’]s?$", "", name)
    if name.count("(") != name.count(")"):
        name = f"{name})" if "(" in name[1:] else name.strip("()")
    return re.sub(r"^(?:the|a|an|both|of|in|film|song|album) (?=\S)", "", name)


def _counts(name: str, names: Names) -> bool:
    """Whether a name is long enough to be looked for: four characters, two words, or an abbreviation; no number."""
    short = key(bare(name)) or key(name)
    letters = sum(char.isalpha() for char in short)
    if not letters or short in LEADERS or short in JOINTS:
        return False
    return len(short) >= 4 or " " in short or (len(short) > 1 and (name[0].isupper() or names.is_name(short)))

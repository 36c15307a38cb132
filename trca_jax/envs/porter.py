"""Porter's stemmer of 1980 with the two later changes that Lucene follows (`bli` and `logi` in step 2).

Source: M. F. Porter, An algorithm for suffix stripping, Program 14(3), and the author's notes on departures from it.
"""

from __future__ import annotations

from functools import lru_cache

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize",
    "ion", "al", "er", "ic", "ou",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)  # texts repeat their words
def stem(word: str) -> str:
    """The stem of a lower-case word; words of up to two characters stay. What is no vowel counts as a consonant."""
    if len(word) <= 2:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace(word, _STEP_2)
    word = _replace(word, _STEP_3)
    word = _strip(word)
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _short(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if not _has_vowel(base):
                return word
            if base.endswith(("at", "bl", "iz")):
                return base + "e"
            if _double(base) and base[-1] not in "lsz":
                return base[:-1]
            return base + "e" if _measure(base) == 1 and _short(base) else base
    return word


def _replace(word: str, table: tuple[tuple[str, str], ...]) -> str:
    """The longest suffix of the table that the word ends in decides, whether it is replaced or not."""
    found = max((pair for pair in table if word.endswith(pair[0])), key=lambda pair: len(pair[0]), default=None)
    if found is None or _measure(word[: -len(found[0])]) == 0:
        return word
    return word[: -len(found[0])] + found[1]


def _strip(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            if suffix == "ion" and not base.endswith(("s", "t")):
                return word
            return base if _measure(base) > 1 else word
    return word


def _forms(word: str) -> str:
    """'c' or 'v' for every letter; y after a consonant is a vowel."""
    forms = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and forms.endswith("c"))
        forms += "v" if vowel else "c"
    return forms


def _measure(base: str) -> int:
    """How often a vowel is followed by a consonant."""
    return _forms(base).count("vc")


def _has_vowel(base: str) -> bool:
    return "v" in _forms(base)


def _double(base: str) -> bool:
    return len(base) > 1 and base[-1] == base[-2] and _forms(base)[-1] == "c"


def _short(base: str) -> bool:
    """Consonant, vowel, consonant at the end, the last one not w, x or y."""
    return _forms(base).endswith("cvc") and base[-1] not in "wxy"

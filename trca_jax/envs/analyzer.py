"""Lucene's English analyzer: words by Unicode's rules, possessives, stop words, stems.

Source: UAX #29 (word boundaries) as Lucene's StandardTokenizer applies it: every ideograph, hiragana letter and
pictograph is a token of its own, and punctuation is none.
"""

from __future__ import annotations

import re
import unicodedata

from trca_jax.envs.porter import stem

STOP_WORDS = frozenset(
    (
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with"
    ).split()
)
_LONGEST = 255  # characters; a longer word is cut into pieces of this length

# Word_Break classes of Unicode 12.1, a letter each: A letters, H Hebrew, K katakana, N digits, U joins letters and
# digits, X extends what comes before, Z joiner, R regional indicator, I ideographs, J hiragana, S scripts without
# blanks, E pictographs, C keycap.
_LISTED = {
    **dict.fromkeys("\u003a\u00b7\u0387\u055f\u05f4\u2027\ufe13\ufe55\uff1a", "l"),  # between letters
    **dict.fromkeys("\u002c\u003b\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe50\ufe54\uff0c\uff1b", "n"),  # digits
    **dict.fromkeys("\u002e\u2018\u2019\u2024\ufe52\uff07\uff0e", "b"),  # between either
    **dict.fromkeys("\u005f\u202f\u203f\u2040\u2054\ufe33\ufe34\ufe4d\ufe4e\ufe4f\uff3f", "U"),
    **dict.fromkeys("\u055a\u055b\u055c\u055e\u058a\u05f3", "A"),
    **dict.fromkeys("#*", "#"),
    "'": "q", '"': "d", "\u200b": " ", "\u200c": "X", "\u200d": "Z", "\u066b": "N", "\u20e3": "C",
}  # fmt: skip
_LETTERS = (
    (0x5D0, 0x5F2, "H"), (0xFB1D, 0xFB4F, "H"), (0x3041, 0x3096, "J"), (0x309D, 0x309F, "J"), (0x2E80, 0x2FD5, "I"),
    (0x3005, 0x3007, "I"), (0x3021, 0x3029, "I"), (0x3038, 0x303B, "I"), (0x3400, 0x4DBF, "I"), (0x4E00, 0x9FFF, "I"),
    (0xF900, 0xFAD9, "I"), (0x20000, 0x3FFFF, "I"), (0x3031, 0x3035, "K"), (0x309B, 0x309C, "K"), (0x30A0, 0x30FA, "K"),
    (0x30FC, 0x30FF, "K"), (0x31F0, 0x31FF, "K"), (0x32D0, 0x32FE, "K"), (0x3300, 0x3357, "K"), (0xFF66, 0xFF9D, "K"),
    (0xE01, 0xEDF, "S"), (0x1000, 0x108F, "S"), (0x1780, 0x17DC, "S"), (0x1950, 0x19C9, "S"), (0x1A20, 0x1AA7, "S"),
    (0xA9E0, 0xA9FE, "S"), (0xAA60, 0xAADD, "S"), (0x11700, 0x11746, "S"),
)  # fmt: skip
_SYMBOLS = (
    (0x2C2, 0x2C5, "A"), (0x2D2, 0x2D7, "A"), (0x2DE, 0x2DF, "A"), (0x2E5, 0x2EB, "A"), (0x2ED, 0x2ED, "A"),
    (0x2EF, 0x2FF, "A"), (0x24B6, 0x24E9, "A"), (0xA708, 0xA716, "A"), (0xA720, 0xA721, "A"), (0xA789, 0xA78A, "A"),
    (0xAB5B, 0xAB5B, "A"), (0x1F130, 0x1F149, "A"), (0x1F150, 0x1F169, "A"), (0x1F172, 0x1F17D, "A"),
    (0x1F3FB, 0x1F3FF, "X"), (0xE0020, 0xE007F, "X"), (0xFF9E, 0xFF9F, "X"), (0x1F1E6, 0x1F1FF, "R"),
)  # fmt: skip
_PICTOGRAPHS = tuple(
    (int(first, 16), int(last or first, 16), "E")
    for first, _, last in (
        part.partition("-")
        for part in (
            "a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 25aa-25ab 25b6 "
            "25c0 25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 "
            "2747 274c 274e 2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 "
            "3030 303d 3297 3299 1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f1ad-1f1e5 "
            "1f201-1f20f 1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff "
            "1f774-1f77f 1f7d5-1f7ff 1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a "
            "1f93c-1f945 1f947-1fffd"
        ).split()
    )
)
_CATEGORIES = {**dict.fromkeys(("Lu", "Ll", "Lt", "Lm", "Lo", "Nl"), "A"), "Nd": "N"}
_CATEGORIES |= dict.fromkeys(("Mn", "Mc", "Me", "Cf"), "X")


class _Classes(dict):
    """Code point to class letter, worked out when a character is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        found = _LISTED.get(char) or _within(code, _SYMBOLS + _PICTOGRAPHS)
        if found is None:
            found = _CATEGORIES.get(unicodedata.category(char), " ")
            if found in "A ":
                found = _within(code, _LETTERS) or found
        self[code] = found
        return found


def _within(code: int, ranges: tuple[tuple[int, int, str], ...]) -> str | None:
    return next((name for first, last, name in ranges if first <= code <= last), None)


_classes = _Classes()


def _grammar() -> re.Pattern:
    """Lucene's word rule over class letters. Nothing in it can fail late, so every repetition is possessive.

    Group 1 is no word: joiners that join nothing, passed over at once, or each would be a start that is tried in vain.
    """

    def extended(letters: str) -> str:
        return f"[{letters}][XCZ]*+"

    joiner, letter, digit, kana, hebrew = map(extended, ("U", "AH", "N", "K", "H"))
    between_letters, between_digits = extended("lbq"), extended("nbq")
    katakana = f"{kana}(?:(?:{joiner})*+{kana})*+"
    quoted = f"{hebrew}(?:{extended('d')}{hebrew}|{extended('q')})"
    numbers = f"{digit}(?:(?:(?:{joiner})*+|{between_digits}){digit})*+"
    letters = f"{letter}(?:(?:(?:{joiner})*+|{between_letters}){letter})*+"
    part = f"(?:{katakana}|(?:{quoted}|{numbers}|{letters})++)"
    word = f"(?:{joiner})*+{part}(?:(?:{joiner})++{part})*+(?:{joiner})*+"
    pictograph = "E[XC]*+(?:Z[ER][XC]*+)*+"
    return re.compile(f"{word}|(?:{extended('S')})++|{extended('IJ')}|RR|#[X]?C|{pictograph}|((?:{joiner})++)")


_WORD = _grammar()
_START = re.compile("[AHNKUSIJER#]")  # what a word can begin with
_JOINERS = re.compile("[UXCZ]*")


def words(text: str) -> list[str]:
    """The text's words as they stand, before possessives, stop words and stems.

    >>> words("Wi-Fi 802.11ac, O'Neil's 5℃ 中文")
    ['Wi', 'Fi', '802.11ac', "O'Neil's", '5', '中', '文']
    """
    classes = text.translate(_classes)
    found, at = [], 0
    while match := _WORD.search(classes, at):
        first, at = match.span()
        if at - first > _LONGEST:
            pieces, at = _pieces(classes, first, at)
            found += [text[start:stop] for start, stop in pieces]
        elif match[1] is None:
            found.append(text[first:at])
    return found


def _pieces(classes: str, at: int, end: int) -> tuple[list[tuple[int, int]], int]:
    """The words in a match that is longer than the scanner's buffer, and where it goes on: its last stretch that fits.

    The scanner sees as much as the buffer holds, and after that word, or one character where it sees none, it goes on
    as if at a new start. Any start within a match reaches its end, so nothing is searched again and again.
    """
    pieces = []
    while end - at > _LONGEST:
        if piece := _WORD.match(classes, at, at + _LONGEST):
            stop = piece.end()
            if piece[1] is None:
                pieces.append((at, stop))
            else:  # a word comes into sight when the joiners before it leave room for its first character
                stop = max(at + 1, _JOINERS.match(classes, at, end).end() + 1 - _LONGEST)
        else:
            stop = at + 1
        start = _START.search(classes, stop, end)
        at = start.start() if start else end
    return pieces, at


def _lower(word: str) -> str:
    """Lower case a letter at a time, as Java has it: no final sigma, and one letter for one."""
    return word.lower() if word.isascii() else "".join(char.lower()[0] for char in word)


def term(word: str) -> str:
    """The index term of a word that `words` found: without possessive, lower case, stemmed; empty for a stop word."""
    if word[-1:] in ("s", "S") and word[-2:-1] in ("'", "’", "＇"):
        word = word[:-2]
    word = _lower(word)
    return "" if word in STOP_WORDS else stem(word)


def analyze(text: str) -> list[str]:
    """The index terms of a text, in order, with repeats.

    >>> analyze("Women's T-Shirts for running")
    ['women', 't', 'shirt', 'run']
    """
    return [found for word in words(text) if (found := term(word))]

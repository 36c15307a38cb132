"""Words, stop words and stems: the real analyzer's, and rules that any text must obey."""

import unicodedata
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from webshop_worlds import golden, real

from trca_jax.envs import analyzer
from trca_jax.envs.analyzer import STOP_WORDS, analyze, words
from trca_jax.envs.porter import stem


def test_recorded_texts(shared_data):
    cases = golden(shared_data, "search")["analyzer"]
    assert len(cases) == 50
    for case in cases:
        assert analyze(case["text"]) == case["tokens"], case["text"]


def test_all_products_give_the_recorded_number_of_terms(shared_data):
    stats = golden(shared_data, "search")["index_stats"]
    terms = [analyze(product.document()) for product in real(shared_data)[0].products]
    assert len(terms) == stats["docs"]
    assert sum(map(len, terms)) == stats["total_terms"]
    assert len(set().union(*terms)) == stats["unique_terms"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("can't 3,14 3.14 a.b a:b 1:2 a,b a_b _a _",
         ["can't", "3,14", "3.14", "a.b", "a:b", "1", "2", "a", "b", "a_b", "_a"]),
        ("א'א ב\"ב ג'", ["א'א", 'ב"ב', "ג'"]),
        ("中文ひらカタカナ한글 ไทยภาษา", ["中", "文", "ひ", "ら", "カタカナ", "한글", "ไทยภาษา"]),
        ("👩‍🚀👍🏽🇩🇪🇫🇷1️⃣#️⃣ ☆★ ½°", ["👩‍🚀", "👍🏽", "🇩🇪", "🇫🇷", "1️⃣", "#️⃣", "★"]),
        ("soft\u00adhyphen zero\u200bwidth e\u0301t\u0301e", ["soft\u00adhyphen", "zero", "width", "e\u0301t\u0301e"]),
        ("", []),
        (" \t\n.,;:!?…", []),
    ],
)  # fmt: skip
def test_words(text, expected):
    assert words(text) == expected


def test_a_word_of_more_than_255_letters_is_cut():
    assert list(map(len, words("x" * 600 + " y"))) == [255, 255, 90, 1]
    assert words("x" * 254 + ".yz") == ["x" * 254, "yz"]


def slow_words(text, longest):
    """One character at a time: the longest match that the buffer lets the scanner see, or none, and on by one."""
    classes, found, at = text.translate(analyzer._classes), [], 0
    while at < len(classes):
        whole = analyzer._WORD.match(classes, at)
        if whole and len(whole[0]) > longest:
            whole = analyzer._WORD.match(classes, at, at + longest)
        if whole and whole[1] is None:
            found.append(text[at : whole.end()])
            at = whole.end()
        else:
            at += 1
    return found


@pytest.mark.parametrize("longest", [1, 2, 5])
@given(st.text("aא1ア_'\".:,ก中ぁ\u0301\u200d😀🇩#\u20e3 ", max_size=30))
def test_words_longer_than_the_buffer_are_cut_as_a_slow_scanner_cuts_them(longest, text):
    with mock.patch.object(analyzer, "_LONGEST", longest):
        assert words(text) == slow_words(text, longest)


def test_more_joiners_than_the_buffer_holds():
    assert words("_" * 300 + "a b") == ["_" * 254 + "a", "b"]
    assert words("_" * 300) == words("_" * 300 + "-") == []


@pytest.mark.parametrize("text", ["Women's", "WOMEN'S", "women’s", "women＇s"])
def test_possessives_and_case(text):
    assert analyze(text) == ["women"]


@pytest.mark.parametrize(
    ("text", "term"), [("ΟΔΟΣ", "οδοσ"), ("İZMİR", "izmir"), ("ÄPFEL", "äpfel"), ("STRAẞE", "straße")]
)
def test_lower_case_is_a_letter_at_a_time(text, term):
    assert analyze(text) == [term]


def test_a_stop_word_is_one_only_before_stemming():
    assert analyze("the was will's it's thes") == ["the"]
    assert not set(analyze(" ".join(STOP_WORDS)))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("feed", "feed"), ("agreed", "agre"),
        ("plastered", "plaster"), ("bled", "bled"), ("sing", "sing"), ("hopping", "hop"), ("falling", "fall"),
        ("filing", "file"), ("sky", "sky"), ("happy", "happi"), ("possibly", "possibl"), ("technology", "technolog"),
        ("relational", "relat"), ("hopefulness", "hope"), ("adoption", "adopt"), ("region", "region"), ("roll", "roll"),
        ("controll", "control"), ("rate", "rate"), ("cease", "ceas"), ("us", "us"), ("as", "as"), ("yoyo", "yoyo"),
    ],
)  # fmt: skip
def test_stems(word, expected):
    assert stem(word) == expected


@given(st.text())
def test_words_are_pieces_of_the_text_in_order(text):
    at = 0
    for word in words(text):
        assert 0 < len(word) <= 255
        assert not any(char.isspace() and unicodedata.category(char) != "Zs" for char in word)
        at = text.index(word, at) + len(word)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz'", max_size=30))
def test_any_word_has_a_stem_no_longer_than_itself_and_one_letter(word):
    assert len(stem(word)) <= max(len(word), 1) + 1


@given(st.text(), st.text())
def test_a_line_break_parts_texts(first, second):
    assert words(f"{first}\n{second}") == words(first) + words(second)

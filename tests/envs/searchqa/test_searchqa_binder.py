"""What questions are read as: by hand on small ones, and in figures on the real ones."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.envs.searchqa import generator
from trca_jax.envs.searchqa.binder import FIELDS, binding, read_question
from trca_jax.envs.searchqa.corpus import read_corpus
from trca_jax.envs.searchqa.entities import choices, entities
from trca_jax.envs.searchqa.names import Names, bare, key, mentions, names_in
from trca_jax.envs.searchqa.relations import answer_type, fits, relations, says
from trca_jax.envs.searchqa.retrieval import Passage

TOWN = Names.of(
    [Passage(str(n), title, text, 0.0) for n, (title, text) in enumerate(
        [("Palace of Wind (novel)", "In it, Ada Moss and Wim of Tarnland meet, and Ada Moss leaves for Tarnland."),
         ("First", "He came to the first town, and the first man, of the first function."),
         ("Up, Down", "See how Ada Moss and Tarnland were, in Tarnland and the first river.")] * 2)]
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Who is the spouse of the director of film Up, Down, Fragile?", ("Up, Down, Fragile",)),
        ("Who is the father of Margaret Of Holland, Countess Of Hen?", ("Margaret Of Holland, Countess Of Hen",)),
        ("Where was the director of film Petra (1954 Film) born?", ("Petra (1954 Film)", "Petra")),
        ("Who sang Out Of Mind (Tove Lo Song)?", ("Out Of Mind (Tove Lo Song)", "Out Of Mind", "Tove Lo")),
        ("Who is Empress Wang (Gaozong)'s mother-in-law?", ("Empress Wang (Gaozong)", "Empress Wang")),
        ('What part did Dan Lewis play in "the long day"?', ("long day", "Dan Lewis")),
        ("Which film came out first, She Shall Go or That Devil, Bateese?", ("She Shall Go", "That Devil, Bateese")),
        ("Are Weeze Airport and Lae Airport located in the same country?", ("Weeze Airport", "Lae Airport")),
        ("What sport does Dipu Ghosh play?", ("Dipu Ghosh",)),
        ("What is Howard the capital of?", ("Howard",)),
    ],
)
def test_things_by_capitals_and_frames(question, found):
    assert entities(question, Names())[: len(found)] == found


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("who wrote palace of wind", "palace of wind"),
        ("where does ada moss live", "ada moss"),
        ("what is the first river in tarnland", "tarnland"),
    ],
)
def test_things_without_capitals_by_what_the_corpus_writes(question, found):
    assert found in entities(question, TOWN)
    assert "first" not in entities(question, TOWN)


def test_a_question_without_names_gives_its_most_telling_words():
    assert entities("what is the function of the pericardial sac", TOWN) == ("pericardial sac",)
    assert entities("is it?", TOWN) == ()


def test_choices_are_pairs():
    assert choices("Who is older, Ada Moss or Wim Garstad?") == ("Ada Moss", "Wim Garstad")
    assert choices("Between Iain Banks and Irwin Shaw, which writer lived longer?") is None
    assert choices("Who wrote Them or Us?") is None
    assert read_question("Who is older, Ada Moss or Wim Garstad?", Names()).choices == ("ada moss", "wim garstad")
    assert read_question("Are Ada Moss and Wim Garstad both painters?", Names()).choices == ()


@pytest.mark.parametrize(
    ("question", "asked", "kind"),
    [
        ("When was the author of the novel X born?", {"author", "birth date", "birth place"}, "date"),
        ("In which city is X College?", {"located in", "education"}, "place"),
        ("Who is the paternal grandmother of X?", {"father", "mother"}, "person"),
        ("Are both X and Y films?", set(), "yes-no"),
        ("How many people live in X?", {"population"}, "number"),
        ("Which company released the song X?", {"publication"}, "name"),
        ("X was what?", set(), "name"),
    ],
)
def test_relations_and_types(question, asked, kind):
    assert set(relations(question)) == asked
    assert answer_type(question) == kind


@pytest.mark.parametrize(
    ("text", "kind", "holds"),
    [
        ("on 3 March 1921", "date", True), ("1921", "date", True), ("in Delbury", "date", False),
        ("seven towns", "number", True), ("some towns", "number", False), ("No.", "yes-no", True),
        ("Norway", "yes-no", False), ("Ada Moss", "person", True), ("1921", "place", False), ("jazz", "person", None),
        ("anything", "name", None),
    ],
)  # fmt: skip
def test_whether_a_text_is_of_a_type(text, kind, holds):
    assert fits(text, kind) is holds


def test_a_relation_word_is_a_whole_word():
    assert says("It was directed by her.", ("director",))
    assert not says("It was misdirected.", ("director",)) and not says("It was directed.", ())


def test_names_in_running_text():
    text = "The Tarn is a river. In 1901 Ada Moss's friend Wim crossed it, near Castle of Wind."
    assert names_in(text) == ("Tarn", "Ada Moss's", "Wim", "Castle of Wind")
    assert key("Ada Moss's") == "ada moss" and bare("Silver (song)") == "Silver"
    assert mentions("ada moss left", "moss") and not mentions("mossy", "moss") and not mentions("moss", "")


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("Ab c'’\"“”‘().,:?or and1–é<>🚢"), max_size=60))
def test_no_text_raises(text):
    for names in (Names(), TOWN):
        bound = binding(read_question(text, names))
        assert set(bound) == {field.name for field in FIELDS}
        assert len(bound["entities"] or ()) <= FIELDS[0].width
        assert all(bound["entities"] or ("x",))


def test_a_very_long_question_is_read_in_part():
    assert entities("Who is Ada Moss " + "and X " * 50_000, Names())


def test_every_generated_question_is_about_its_subject():
    names = Names.of(generator.corpus())
    for split in generator.SPLITS:
        for q in generator.questions(split):
            assert read_question(q.question, names).entities == (key(q.supporting_titles[0]),)


@cache
def world(shared_data):
    return Names.of(read_corpus(shared_data / "searchqa" / "corpus.jsonl"))


def rows(shared_data, *files):
    for file in files:
        with (shared_data / "searchqa" / f"{file}.jsonl").open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def share(found):
    found = list(found)
    return sum(found) / len(found)


def test_subjects_of_real_questions(shared_data):
    """Share of questions whose named subjects are all bound exactly; plain rules gave 85.4 % and 96.5 %."""
    names = world(shared_data)

    def exact(row):
        bound = {key(name) for name in entities(row["question"], names)}
        text = key(row["question"])
        subjects = {s for s, _, _ in row["metadata"].get("evidences", ()) if mentions(text, key(s))}
        return all(key(s) in bound for s in subjects) if subjects else None

    two = [exact(row) for row in rows(shared_data, "2wikimultihopqa/train", "2wikimultihopqa/dev")]
    assert share(x for x in two if x is not None) >= 0.98
    popqa = list(rows(shared_data, "popqa/test"))
    assert share(key(r["metadata"]["subj"]) in map(key, entities(r["question"], names)) for r in popqa) >= 0.99
    assert share("capital" in relations(r["question"]) for r in popqa if r["metadata"]["prop"] == "capital") == 1.0


def test_things_of_real_questions_stand_in_their_evidence(shared_data):
    """Share of questions of which a thing that they name stands in a passage that supports the answer; every question
    binds something. Read by hand, 93 % of a sample of 200 had a thing that one would search for."""
    names, texts = world(shared_data), {}
    for passage in read_corpus(shared_data / "searchqa" / "corpus.jsonl"):
        texts.setdefault(passage.title, []).append(key(f"{passage.title} {passage.text}"))

    def stands(row):
        found = [key(bare(name)) for name in entities(row["question"], names)]
        told = [text for title in row["metadata"]["supporting_titles"] for text in texts[title]]
        return any(mentions(text, name) for text in told for name in found)

    for files, least in {
        ("hotpotqa/train", "hotpotqa/dev"): 0.97, ("2wikimultihopqa/train", "2wikimultihopqa/dev"): 0.99,
        ("musique/train", "musique/dev"): 0.97, ("nq/train",): 0.80,
    }.items():  # fmt: skip
        labelled = [row for row in rows(shared_data, *files) if row["metadata"].get("supporting_titles")]
        assert share(map(stands, labelled)) >= least, files
    for file in ("nq/test", "triviaqa/test", "bamboogle/test"):
        assert share(bool(entities(row["question"], names)) for row in rows(shared_data, file)) >= 0.99, file

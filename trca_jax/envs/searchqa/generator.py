"""A small made-up world as a corpus and questions about it, for runs without a download.

People are born in cities, study at colleges, marry and move; they direct films, write novels, sing songs, found
companies and are mayors. Texts are short and regular, and every answer is a name or a year that stands in a passage.
The same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from random import Random
from typing import Any

from trca_jax.envs.searchqa.corpus import passage
from trca_jax.envs.searchqa.lexicon import (
    ADJECTIVES,
    CITIES,
    COUNTRIES,
    FIRST_NAMES,
    HOUSES,
    LAST_NAMES,
    NOUNS,
    RIVERS,
)
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.retrieval import Passage
from trca_jax.envs.searchqa.rows import question

NAME = "generated"
SPLITS = ("train", "dev", "test")
KINDS = ("single", "bridge")
_PEOPLE, _WORKS, _COLLEGES, _COMPANIES = 560, 900, 24, 40  # companies of each kind
_YEARS = range(1900, 2000)
_HELD_OUT = 0.15  # of the subjects, in dev and in test each
# kind of work: what its maker did, what its company did, what that is, its name's last word, what the maker is
_WORK_KINDS = {
    "film": ("directed", "released", "film studio", "Pictures", "director"),
    "novel": ("written", "published", "publisher", "Press", "author"),
    "song": ("sung", "released", "record label", "Records", "singer"),
}
_WORK_QUESTIONS = {
    "film": {"maker": "Who directed the film {}?", "year": "When was the film {} released?",
             "company": "Which company released the film {}?"},
    "novel": {"maker": "Who wrote the novel {}?", "year": "When was the novel {} published?",
              "company": "Which company published the novel {}?"},
    "song": {"maker": "Who sang the song {}?", "year": "When was the song {} released?",
             "company": "Which company released the song {}?"},
}  # fmt: skip
# kind of thing: what may be asked about it
_SINGLE = {
    "city": {"country": "In which country is {}?", "mayor": "Who is the mayor of {}?",
             "river": "On which river does {} lie?"},
    "college": {"city": "In which city is {}?", "founded": "When was {} founded?"},
    "company": {"city": "In which city is {}?", "founder": "Who founded {}?"},
    "person": {"city": "In which city was {} born?", "born": "When was {} born?",
               "college": "At which college did {} study?", "spouse": "Who married {}?"},
    **_WORK_QUESTIONS,
}  # fmt: skip
# kind of thing: questions over two hops, with the relation of each
_BRIDGE = {
    "person": (
        ("In which country is the city where {} was born?", "city", "country"),
        ("Who is the mayor of the city where {} was born?", "city", "mayor"),
        ("In which city is the college where {} studied?", "college", "city"),
        ("Where was the spouse of {} born?", "spouse", "city"),
    ),
    **{
        work: (
            (f"In which city was the {maker} of the {work} {{}} born?", "maker", "city"),
            (f"When was the {maker} of the {work} {{}} born?", "maker", "born"),
            (f"At which college did the {maker} of the {work} {{}} study?", "maker", "college"),
            (f"Who married the {maker} of the {work} {{}}?", "maker", "spouse"),
            (f"Who founded the company that {issued} the {work} {{}}?", "company", "founder"),
        )
        for work, (_, issued, _, _, maker) in _WORK_KINDS.items()
    },
}


@dataclass(frozen=True)
class _Thing:
    """name: as in texts, and the title of its passages. kind: person, city, ... facts: relation to other names."""

    name: str
    kind: str
    facts: dict[str, str] = field(default_factory=dict)


@cache
def corpus() -> tuple[Passage, ...]:
    """The world's passages."""
    return tuple(map(passage, corpus_rows()))


@cache
def questions(split: str) -> tuple[Question, ...]:
    """The questions of a split; no subject of one is a subject in another. Raises ValueError for an unknown split."""
    return tuple(question(row, NAME, row["id"]) for row in question_rows(split))


def corpus_rows() -> Iterator[dict[str, str]]:
    """The passages as rows of a corpus file."""
    texts = [(thing.name, text) for thing in _world().values() for text in _texts(thing)]
    for number, (title, text) in enumerate(texts):
        yield {"id": str(number), "title": title, "contents": f'"{title}"\n{text}'}


def question_rows(split: str) -> Iterator[dict[str, Any]]:
    """The questions as rows of FlashRAG's files. Raises as `questions` does."""
    if split not in SPLITS:
        raise ValueError(f"split {split!r} of the generated world is unknown; expected one of {', '.join(SPLITS)}")
    rng = Random("questions")
    for number, thing in enumerate(_world().values()):
        (chosen,) = rng.choices(SPLITS, (1 - 2 * _HELD_OUT, _HELD_OUT, _HELD_OUT))
        relation = rng.choice(list(_SINGLE[thing.kind]))
        bridge = rng.choice(_BRIDGE[thing.kind]) if thing.kind in _BRIDGE else None
        if chosen == split:
            hop = _hop(thing, relation)
            yield _row(f"{split}_{number}_single", "single", hop["question"], [hop], [thing])
            if bridge:
                text, first, second = bridge
                between = _world()[thing.facts[first]]
                hops = [_hop(thing, first), _hop(between, second, "#1")]
                yield _row(f"{split}_{number}_bridge", "bridge", text.format(thing.name), hops, [thing, between])


def _hop(thing: _Thing, relation: str, name: str = "") -> dict[str, str]:
    return {
        "question": _SINGLE[thing.kind][relation].format(name or thing.name),
        "relation": relation,
        "answer": thing.facts[relation],
    }


def _row(number: str, kind: str, text: str, hops: list[dict[str, str]], things: list[_Thing]) -> dict[str, Any]:
    triples = [[thing.name, hop["relation"], hop["answer"]] for thing, hop in zip(things, hops, strict=True)]
    about = {
        "type": kind,
        "supporting_titles": [thing.name for thing in things],
        "evidences": triples,
        "question_decomposition": hops,
    }
    return {"id": number, "question": text, "golden_answers": _aliases(hops[-1]["answer"]), "metadata": about}


def _aliases(answer: str) -> list[str]:
    """The name as passages write it, and others for the same thing."""
    thing = _world().get(answer)
    kind = thing.kind if thing else ""
    if kind == "person":
        first, last = answer.split()
        return [answer, f"{last}, {first}"]
    if kind == "city":
        return [answer, f"{answer}, {thing.facts['country']}"]
    if kind in ("company", "college"):
        return [answer, f"{answer} of {thing.facts['city']}"]
    return [answer]


@cache
def _world() -> dict[str, _Thing]:
    rng = Random("world")
    things: dict[str, _Thing] = {}

    def add(kind: str, name: str, **facts: str) -> str:
        things[name] = _Thing(name, kind, facts)
        return name

    people = [f"{first} {last}" for first, last in product(FIRST_NAMES, LAST_NAMES)]
    people = rng.sample(people, _PEOPLE)
    year = lambda: str(rng.choice(_YEARS))  # noqa: E731
    for city in CITIES:
        add("city", city, country=rng.choice(COUNTRIES), river=rng.choice(RIVERS), mayor=rng.choice(people))
    houses = rng.sample(HOUSES, len(HOUSES))
    colleges = [
        add("college", f"{house} College", city=rng.choice(CITIES), founded=year()) for house in houses[:_COLLEGES]
    ]
    companies = {
        work: [
            add(
                "company",
                f"{house} {last}",
                what=what,
                city=rng.choice(CITIES),
                founder=rng.choice(people),
                founded=year(),
            )
            for house in rng.sample(houses[_COLLEGES:], _COMPANIES)
        ]
        for work, (_, _, what, last, _) in _WORK_KINDS.items()
    }
    couples = zip(people[::2], people[1::2], strict=True)
    spouse = {a: b for couple in couples for a, b in (couple, couple[::-1])}
    for person in people:
        born, moved = rng.sample(CITIES, 2)
        add("person", person, city=born, born=year(), college=rng.choice(colleges), spouse=spouse[person], moved=moved)
    works = [f"{adjective} {noun}" for adjective, noun in product(ADJECTIVES, NOUNS)]
    works = rng.sample(works, _WORKS)
    for work in works:
        kind = rng.choice(tuple(_WORK_KINDS))
        add(
            kind, work, maker=rng.choice(people), company=rng.choice(companies[kind]), year=year(),
            shown=rng.choice(CITIES), like=rng.choice(works),
        )  # fmt: skip
    return things


def _texts(thing: _Thing) -> tuple[str, ...]:
    """The passages about a thing."""
    name, f = thing.name, thing.facts
    if thing.kind == "city":
        return (
            f"{name} is a city in {f['country']}. It lies on the river {f['river']}.",
            f"{name} is a city. The mayor of {name} is {f['mayor']}.",
        )
    if thing.kind == "college":
        return (f"{name} is a college in {f['city']}. It was founded in {f['founded']}.",)
    if thing.kind == "company":
        return (f"{name} is a {f['what']} in {f['city']}. It was founded by {f['founder']} in {f['founded']}.",)
    if thing.kind == "person":
        return (
            f"{name} was born in {f['city']} in {f['born']}. {name} studied at {f['college']}.",
            f"{name} married {f['spouse']}. {name} moved to {f['moved']}.",
        )
    made, issued = _WORK_KINDS[thing.kind][:2]
    return (
        f"{name} is a {thing.kind}. It was {made} by {f['maker']} and {issued} by {f['company']} in {f['year']}.",
        f"{name} was presented in {f['shown']}. It was compared with {f['like']}.",
    )

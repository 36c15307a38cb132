"""A small corpus, episodes in words, and judgements, for tests."""

from functools import cache

import numpy as np

from trca_jax.envs.base import Task
from trca_jax.envs.searchqa import Searchqa
from trca_jax.envs.searchqa.binder import binding, read_question
from trca_jax.envs.searchqa.facts import SearchqaAdapter
from trca_jax.envs.searchqa.names import Names
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.retrieval import Passage
from trca_jax.envs.searchqa.texts import VERL_AGENT, information
from trca_jax.rubrics.language import Judge
from trca_jax.rubrics.schema import encode_bindings, encode_facts

BENCHMARK = Searchqa()
T = 8  # steps that judgements are made for; one shape, compiled once


def search(query):
    return f"<search>{query}</search>"


def answer(text):
    return f"<answer>{text}</answer>"


def results(*documents, protocol=VERL_AGENT):
    """An observation of (title, text) pairs."""
    return information([Passage(str(n), *document, 1.0) for n, document in enumerate(documents)], protocol)


def question(text, *golds, **more):
    return Question("t/1", text, golds or ("gold",), "t", "t", **more)


def task(text, *golds, **more):
    return Task("t/1", "searchqa", text, "t", question(text, *golds, **more))


def follow(text, steps, names=Names()):  # noqa: B008
    """The adapter after an episode, and the facts of its transitions (action, observation)."""
    adapter = SearchqaAdapter(read_question(text, names))
    return adapter, [adapter.transition(action, seen, ()) for action, seen in steps]


@cache
def judge():
    return Judge(BENCHMARK.library)


def judgements(rows, texts):
    """bool [R,T,J] and bound [R,J] of facts per rollout."""
    symbols = judge().symbols()
    facts = encode_facts(rows, BENCHMARK.library, symbols, T)
    bindings = encode_bindings([binding(read_question(text, Names())) for text in texts], BENCHMARK.library, symbols)
    return tuple(map(np.asarray, judge()(facts, bindings)))


def fired(text, steps):
    """The items that fire, a set for each step."""
    _, rows = follow(text, steps)
    judged, _ = judgements([rows], [text])
    return [{judge().items[j] for j in np.flatnonzero(row)} for row in judged[0, : len(rows)]]


def bound(text):
    _, known = judgements([[]], [text])
    return {judge().items[j] for j in np.flatnonzero(known[0])}

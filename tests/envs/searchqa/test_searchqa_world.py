"""The generated world: its corpus, its questions, the commands on offer, and the scripted reader."""

import hashlib
import json
import random
import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.envs.searchqa import Searchqa, generator
from trca_jax.envs.searchqa.actions import ANSWER, SEARCH, project
from trca_jax.envs.searchqa.brief import brief
from trca_jax.envs.searchqa.commands import command, offered
from trca_jax.envs.searchqa.corpus import read_corpus
from trca_jax.envs.searchqa.datasets import read_questions
from trca_jax.envs.searchqa.names import Names, key, mentions
from trca_jax.envs.searchqa.player import wander
from trca_jax.envs.searchqa.scoring import exact_match
from trca_jax.envs.searchqa.sources import corpus_facts, passages
from trca_jax.envs.searchqa.tasks import load_tasks
from trca_jax.envs.searchqa.texts import Document

QUESTIONS = {split: generator.questions(split) for split in generator.SPLITS}
TEXTS = {}
for passage_ in generator.corpus():
    TEXTS.setdefault(passage_.title, []).append(passage_.text)


def test_sizes():
    assert len(generator.corpus()) == 3224
    assert {split: len(found) for split, found in QUESTIONS.items()} == {"train": 2195, "dev": 459, "test": 490}
    kinds = Counter(q.kind for found in QUESTIONS.values() for q in found)
    assert set(kinds) == {"single", "bridge"} and min(kinds.values()) > 1400


def test_every_answer_stands_in_the_passage_that_it_should_stand_in():
    for found in QUESTIONS.values():
        for q in found:
            hop = q.supporting_titles[-1]
            assert any(mentions(key(text), key(q.golden_answers[0])) for text in TEXTS[hop])
            assert len(q.supporting_titles) == len(q.evidences) == len(q.sub_questions) == 1 + (q.kind == "bridge")
            assert q.supporting_titles[0] in q.question and not exact_match(q.supporting_titles[0], q.golden_answers)
            assert len(set(q.golden_answers)) == len(q.golden_answers)
            if q.kind == "bridge":  # the second hop is not in the question, and the first leads to it
                bridge = q.evidences[0][2]
                assert bridge == q.supporting_titles[1] and bridge not in q.question and bridge in q.sub_questions[1]
                assert any(bridge in text for text in TEXTS[q.supporting_titles[0]])
    assert sum(len(q.golden_answers) > 1 for q in QUESTIONS["test"]) > 200


def test_subjects_are_of_one_split_only_and_questions_of_one_answer():
    subjects = {split: {q.supporting_titles[0] for q in found} for split, found in QUESTIONS.items()}
    assert not (subjects["train"] & subjects["dev"] or subjects["train"] & subjects["test"])
    assert not subjects["dev"] & subjects["test"]
    texts = Counter(q.question for found in QUESTIONS.values() for q in found)
    assert max(texts.values()) == 1


def test_the_files_hold_the_same(tmp_path):
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, generator.corpus_rows())))
    assert read_corpus(tmp_path / "corpus.jsonl") == generator.corpus()
    (tmp_path / generator.NAME).mkdir()
    rows = map(json.dumps, generator.question_rows("dev"))
    (tmp_path / generator.NAME / "dev.jsonl").write_text("\n".join(rows))
    assert read_questions(tmp_path, [generator.NAME], "dev") == QUESTIONS["dev"]
    with pytest.raises(ValueError, match="split 'valid' of the generated world is unknown; expected one of train"):
        generator.questions("valid")


def test_tasks_say_what_results_depend_on(tmp_path):
    assert Searchqa().tasks("test", 2).facts["corpus"] == {
        "name": "generated world",
        "passages": 3224,
        "sha256": hashlib.sha256("".join(json.dumps(r) + "\n" for r in generator.corpus_rows()).encode()).hexdigest(),
    }
    (tmp_path / "nq").mkdir()
    (tmp_path / "nq" / "test.jsonl").write_text('{"id": "1", "question": "who", "golden_answers": ["a"]}\n')
    asked = Searchqa(source=str(tmp_path), task_types=("nq",), k=5, protocol="search-r1", limit=5)
    assert asked.tasks("eval").facts["corpus"] is None  # making the search engine says so
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "contents": "a"}\n')
    corpus_facts.cache_clear()
    facts = asked.tasks("eval").facts
    assert facts["corpus"] == {
        "name": f"{tmp_path.name}/corpus.jsonl",
        "passages": 1,
        "sha256": "8d41a054ebff5b0e3b46945df54be958401938105e90f4964511415407bda71f",
    }
    assert [facts[name] for name in ("retriever", "top_k", "protocol", "actions")] == ["bm25", 5, "search-r1", 5]
    served = replace(asked, retriever="http://here:8000").tasks("eval").facts
    assert (served["retriever"], served["corpus"]) == ("http://here:8000", None)


def test_tasks_of_the_world():
    tasks = load_tasks("generated", "test", count=10)
    assert Counter(task.kind for task in tasks) == {"single": 5, "bridge": 5}
    assert [task.id for task in tasks] == sorted(task.id for task in tasks)
    assert tasks.sha256 == load_tasks("generated", "test", count=10).sha256
    assert tasks.sha256 != load_tasks("generated", "test", count=10, seed=1).sha256
    assert {task.kind for task in load_tasks("generated", "eval", task_types=("bridge",))} == {"bridge"}
    assert str(tasks).startswith("10 tasks, split test, from the generated world of 3224 passages (5 bridge, 5 single;")
    for arguments, said in (
        ({"task_types": ("nq",)}, r"unknown kinds \['nq'\] of generated questions; expected some of single, bridge"),
        ({"count": 0}, "0 questions asked for, but the generated world of 3224 passages has 1 to 490"),
    ):
        with pytest.raises(ValueError, match=said):
            load_tasks("generated", "test", **arguments)


def test_tasks_of_the_seven_real_sets(shared_data):
    source = str(shared_data / "searchqa")
    tasks = load_tasks(source, "eval", count=70)
    assert Counter(task.kind for task in tasks) == dict.fromkeys(
        ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"), 10
    )
    assert {task.kind for task in load_tasks(source, "train")} == {"nq", "hotpotqa"}
    assert all(task.payload.golden_answers and task.instruction.endswith("?") for task in tasks)


def test_bad_rows_are_named(tmp_path):
    (tmp_path / "nq").mkdir()
    for row, said in (({"question": "q"}, "no gold|gold"), ({"question": " ", "golden_answers": ["a"]}, "question")):
        (tmp_path / "nq" / "test.jsonl").write_text(json.dumps({"id": "r1", **row}))
        with pytest.raises(ValueError, match=rf"test.jsonl, line 1.*(?:{said})"):
            load_tasks(str(tmp_path), "test", task_types=("nq",))


def test_commands_on_offer():
    seen = [[Document("Silent Harbor", "It was directed by Ada Moss in 1931.")]]
    assert offered("Who made Silent Harbor?", [], Names()) == (
        "<search> Silent Harbor </search>",
        "<search> Who made Silent Harbor </search>",
        "<answer> Silent Harbor </answer>",
    )
    assert offered("Who made Silent Harbor?", seen, Names())[2:] == (
        "<search> Ada Moss </search>",
        "<answer> Silent Harbor </answer>",
        "<answer> Ada Moss </answer>",
        "<answer> 1931 </answer>",
    )
    assert all(project(c).kind == ANSWER for c in offered("Is Ada Moss a poet?", seen, Names(), searches=False))
    assert "<answer> no </answer>" in offered("Is Ada Moss a poet?", seen, Names())
    many = [[Document(f"Town{n}", "x")] for n in range(200)]
    kinds = Counter(project(c).kind for c in offered("Who made Silent Harbor?", many, Names()))
    assert kinds == {SEARCH: 12, ANSWER: 48}


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("Ab </>search"), max_size=40), st.text(st.sampled_from("Ab1 </>answer."), max_size=40))
def test_whatever_is_read_commands_are_what_they_say(question, text):
    found = offered(question, [[Document("T", text)]], Names())
    assert found and len(set(found)) == len(found)
    assert all(project(c).valid and str(project(c)).count("<") == 2 for c in found)


def play(benchmark, env, game, share, seed):
    seen = env.reset(game)
    adapter = benchmark.adapter(game, seen.text)
    player = benchmark.demonstrator(adapter, random.Random(seed), share)
    actions = []
    while not seen.done:
        actions.append(player.act(seen.admissible))
        assert not seen.admissible or actions[-1] in seen.admissible
        admissible, seen = seen.admissible, env.step(actions[-1])
        adapter.transition(actions[-1], seen.text, admissible)
    return actions, seen


@pytest.mark.parametrize("queries", ["free", "offered"])
def test_the_reader_answers_most_questions_and_noise_hardly_any(queries):
    benchmark = Searchqa(queries=queries)
    env, games = benchmark.make_env(), benchmark.tasks("dev", 80)
    won = {
        share: sum(play(benchmark, env, game, share, number)[1].won for number, game in enumerate(games))
        for share in (1.0, 0.5, 0.0)
    }
    assert won[1.0] >= 70
    if queries == "offered":
        assert 50 > won[0.5] > 10 >= won[0.0]
        assert play(benchmark, env, games.tasks[0], 0.5, 3)[0] == play(benchmark, env, games.tasks[0], 0.5, 3)[0]


def test_a_folder_of_other_questions_is_played_too(tmp_path):
    (tmp_path / "nq").mkdir()
    rows = [{"id": "0", "contents": '"Ada Moss"\nShe painted the Tarn.'}, {"id": "1", "contents": '"Wend"\nA river.'}]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "nq" / "test.jsonl").write_text('{"id": "a", "question": "what did ada moss paint", "answer": "Tarn"}')
    benchmark = Searchqa(source=str(tmp_path), queries="offered", task_types=("nq",))
    (game,) = benchmark.tasks("eval")
    assert (game.id, game.kind, game.instruction) == ("nq/a", "nq", "what did ada moss paint?")
    actions, seen = play(benchmark, benchmark.make_env(), game, 1.0, 0)
    assert project(actions[0]).kind == SEARCH and seen.won
    rows[1]["contents"] = ""
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match=r"corpus.jsonl, line 2: row '1' has no contents"):
        passages.__wrapped__(str(tmp_path))


def test_noise_searches_twice_as_often_as_it_answers():
    rng = random.Random(0)
    offers = (command(SEARCH, "a"), command(ANSWER, "b"), command(ANSWER, "c"))
    drawn = Counter(project(wander(rng, offers)).kind for _ in range(6000))
    assert drawn[SEARCH] / 6000 == pytest.approx(2 / 3, abs=0.03)
    assert wander(rng, offers[1:2]) == offers[1]
    with pytest.raises(ValueError, match="no admissible command"):
        wander(rng, ())


def test_texts_in_few_words_hold_names_and_the_vocabulary_holds_them():
    benchmark = Searchqa(queries="offered")
    words = set(benchmark.vocabulary().split())
    assert len(words) < 700
    env = benchmark.make_env()
    for game in benchmark.tasks("test", 30):
        seen = env.reset(game)
        texts = [game.instruction, seen.text]
        for name in game.payload.supporting_titles:
            seen = env.step(command(SEARCH, name))
            texts.append(seen.text)
            assert set(" ".join(seen.admissible).lower().split()) <= words
            assert name.lower() in brief(seen.text)
        assert {word for text in texts for word in brief(text).split()} <= words
    assert brief("In which city was Ada Moss born?") == "in which city ada moss born"
    assert not re.search(r"[<>{}\\\"]", brief(seen.text))

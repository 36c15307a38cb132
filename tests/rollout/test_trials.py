"""Reflexion's trials with a scripted player, with a model behind an endpoint, and with a local policy."""

import jax
import numpy as np
import pytest
from boxes import task
from chat_server import Bad, serving
from fake_world import CONFIG, TOKENIZER, World

from trca_jax.agents.chat import Chat
from trca_jax.agents.endpoint import ChatError
from trca_jax.agents.react import ReactPrompt
from trca_jax.agents.reflexion import remind
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.decoding import Decoding
from trca_jax.policy.sampler import Buckets
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.converse import Conversations
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.trials import Trials

WORLD = World()
REACT = ReactPrompt(WORLD.role, WORLD.declaration.actions, WORLD.example)
KEY, GREEDY = jax.random.key(0), Decoding(0.0)


class Scripted:
    """Wins a task in the trial that its name says; 'x' fails in its second trial, 'y' cannot be reflected on."""

    def __init__(self, longest=10_000):
        self.calls, self.asked, self.longest = [], [], longest

    def __call__(self, params, tasks, groups, key, on_turn=None, *, first=0, decoding=None):
        trial = len(self.calls) + 1
        self.calls.append([(t.id, t.instruction, g) for t, g in zip(tasks, groups, strict=True)])
        episodes = []
        for t, g in zip(tasks, groups, strict=True):
            none = np.zeros(0, np.int32)
            steps = [Step(none, none, none, None, f"act {k}", (0, 0), f"saw {k}", (), f"saw {k + 1}") for k in range(3)]
            failure = "broken" if t.id == "x" and trial == 2 else None
            episodes.append(Episode(t, g, "append", "saw 0", steps, won=t.id == str(trial), failure=failure))
        return episodes

    def fits(self, text):
        return len(text) <= self.longest

    def write(self, params, texts, key, *, first=0, decoding=None):
        self.asked.append(list(texts))
        return [
            ChatError("no answer") if "open the yellow box" in text else f"note {len(self.asked)}" for text in texts
        ]


def scripted(names, count, goals=None, **more):
    player = Scripted(**more)
    tasks = [task(name, (goals or {}).get(name, "red")) for name in names]
    episodes = Trials(player, count, "You open boxes.")(None, tasks, range(5, 5 + len(tasks)), KEY, decoding=GREEDY)
    return episodes, player, tasks


def test_only_failed_tasks_are_tried_again_and_each_trial_knows_the_notes():
    episodes, player, tasks = scripted(["1", "2", "3", "never"], 3)
    names = [[name for name, _, _ in call] for call in player.calls]
    assert names == [["1", "2", "3", "never"], ["2", "3", "never"], ["3", "never"]]
    assert [[group for *_, group in call] for call in player.calls] == [[5, 6, 7, 8], [6, 7, 8], [7, 8]]
    plain, noted = "open the red box", "\nYou have failed at this task before, and noted for yourself:\n1. note 1"
    assert [call[-1][1] for call in player.calls] == [plain, plain + noted, plain + noted + "\n2. note 2"]
    assert [e.won for e in episodes] == [True, True, True, False] and [e.trials for e in episodes] == [1, 2, 3, 3]
    assert [e.task for e in episodes] == tasks  # as they were, without notes
    assert episodes[2].reflections == ("note 1", "note 2") and [e.group for e in episodes] == [5, 6, 7, 8]


def test_one_trial_more_than_is_needed_is_not_played():
    _, player, _ = scripted(["1", "2"], 9)
    assert len(player.calls) == 2 and len(player.asked) == 1


def test_infrastructure_that_fails_ends_the_trials_of_its_task():
    episodes, player, _ = scripted(["x", "y", "3"], 4, {"y": "yellow"})
    assert [[name for name, _, _ in call] for call in player.calls] == [["x", "y", "3"], ["x", "3"], ["3"]]
    assert [e.failure for e in episodes] == ["broken", "no answer", None] and episodes[2].won


def test_a_question_shows_as_many_of_the_last_steps_as_fit():
    whole = scripted(["never"], 2)[1].asked[0][0]
    assert all(f"Observation: saw {k}\nact {k}" in whole for k in range(3)) and "Observation: saw 3" in whole
    cut = scripted(["never"], 2, longest=len(whole) - 1)[1].asked[0][0]
    assert "act 0" not in cut and "act 1" in cut and len(cut) < len(whole)
    none = scripted(["never"], 2, longest=0)[1].asked[0][0]
    assert "act" not in none.partition("Do not")[0] and "Observation: saw 3" in none


def test_with_a_model_behind_an_endpoint(tmp_path, monkeypatch):
    """It opens the wrong box until its own note names the right one, and a second run asks nothing again."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def answer(body):
        text = body["messages"][0]["content"]
        if text.startswith("You open boxes.\nYou have tried"):
            return "<think>hm</think>Box 3 is\ngreen, not box 1."
        if "noted for yourself:\n1. Box 3 is green, not box 1." in text:
            return "<think>as noted</think><action>open 3</action>"
        return "<think>try</think><action>open 1</action>"

    def play(url):
        chat = Chat(url, "m", cache=tmp_path, tries=1, timeout_s=1.0)
        with EnvPool(WORLD.make_env, slots=2, workers=0) as pool:
            player = Trials(Conversations(chat, REACT, pool, max_steps=2, max_new=64), 3, WORLD.role)
            return player(None, [task("a", "red"), task("b", "green")], [0, 1], KEY, decoding=GREEDY), chat

    with serving(answer) as server:
        (a, b), chat = play(server.url)
        first = len(server.seen)
        server.answer = lambda body: Bad(404)
        (c, d), again = play(server.url)
    assert (a.won, a.trials, b.won, b.trials, len(b.steps)) == (True, 1, True, 2, 1)
    assert b.reflections == ("Box 3 is green, not box 1.",) and b.task.instruction == "open the green box"
    assert first == 1 + 2 + 1 + 1 == chat.usage()["requests"] == again.usage()["cached"] and len(server.seen) == first
    assert (c.trials, d.trials, d.reflections) == (1, 2, b.reflections)


@pytest.fixture(scope="module")
def local(params):
    """play(count, decoding) -> episodes and collector, with ReAct prompts in words."""

    def run(count, decoding):
        codec = Codec(TOKENIZER, REACT, 4)
        with EnvPool(WORLD.make_env, slots=3, workers=0) as pool:
            collector = Collector(
                CONFIG, codec, pool, max_steps=2, max_new=4, halves=2, buckets=Buckets(chunk=(256,), slots=(320,))
            )
            tasks = [task(str(n), "yellow") for n in range(3)]
            return Trials(collector, count, WORLD.role)(params, tasks, range(3), KEY, decoding=decoding), collector

    return run


def test_with_a_local_policy(local):
    """Its notes are what it samples, and the tokens of the next trial's first prompt hold them."""
    episodes, collector = local(2, Decoding(1.0))
    codec = Codec(TOKENIZER, REACT, 4)
    assert any(note for episode in episodes for note in episode.reflections)
    for episode in episodes:
        assert set(" ".join(episode.reflections).split()) <= TOKENIZER.get_vocab().keys()
        told = remind("open the yellow box", episode.reflections)
        first = REACT.first(told, "you see box 1 box 2 box 3 .", ())
        np.testing.assert_array_equal(episode.steps[0].prompt_ids, codec.prompt_ids(first))
        assert len(episode.steps) == 2 and episode.trials == 2
    assert collector.fits("box " * 256) and not collector.fits("box " * 257)


def test_a_local_policy_writes_the_same_whatever_else_it_is_asked(local, params):
    _, collector = local(1, GREEDY)
    texts = [f"you see box {n}" for n in (1, 2, 3, 1, 2)]
    many = collector.write(params, texts, KEY, decoding=GREEDY)
    assert many[:2] == many[3:] and len(many) == 5
    drawn = collector.write(params, texts, KEY)
    alone = collector.write(params, texts[3:4], KEY, first=3)
    assert alone == drawn[3:4]

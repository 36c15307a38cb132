"""Episodes with a model behind an endpoint: the fake world, and a scripted model that speaks the wire format."""

import numpy as np
import pytest
from boxes import COMMANDS, task
from chat_server import Bad, completion, serving
from fake_world import ShortPrompt, World

from trca_jax.agents.chat import Chat
from trca_jax.agents.endpoint import ChatError
from trca_jax.agents.prompts import InstructPrompt, ReactPrompt
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.decoding import Decoding
from trca_jax.rollout.converse import Conversations
from trca_jax.rollout.store import decode, encode

WORLD = World()
REACT = ReactPrompt(WORLD.role, WORLD.declaration.actions, WORLD.example)
INSTRUCT = InstructPrompt(WORLD.role)
LONG = Bad(400, {"error": {"message": "maximum context length is 100 tokens", "code": "context_length_exceeded"}})


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def say(action, thought="hm"):
    return f"<think>{thought}</think> <action>{action}</action>"


def in_turn(body):
    """Opens one box after another; the third is the last."""
    number = sum(message["role"] == "assistant" for message in body["messages"]) + 1
    return say(f"open {number}", f"box {number}")


def play(answer, tasks, prompt=REACT, *, max_steps=4, max_new=64, decoding=Decoding(0.4), cache=None, before=()):  # noqa: B008
    with serving(answer) as server, EnvPool(WORLD.make_env, slots=max(len(tasks), 1), workers=0) as pool:
        url = before[0] if before else server.url
        chat = Chat(url, "m", cache=cache, tries=2, wait_s=0.01, timeout_s=0.5)
        player = Conversations(chat, prompt, pool, max_steps=max_steps, max_new=max_new)
        episodes = player(None, tasks, range(len(tasks)), decoding=decoding)
    return episodes, server, chat


def test_react_keeps_the_conversation_and_ends_when_the_world_does():
    (episode,), server, chat = play(in_turn, [task("a", "green")])
    assert (episode.won, episode.truncated, episode.failure, episode.score) == (True, False, None, 1.0)
    assert [step.action for step in episode.steps] == ["open 1", "open 2", "open 3"]
    assert [step.answer for step in episode.steps] == [say(f"open {n}", f"box {n}") for n in (1, 2, 3)]
    last = server.seen[-1][0]
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert last["messages"][0]["content"] == REACT.first("open the green box", "you see box 1 box 2 box 3 .", COMMANDS)
    assert last["messages"][3]["content"] == say("open 2", "box 2")
    assert last["messages"][4]["content"] == "Observation: you open box 2 . it is blue ."
    assert (last["temperature"], last["max_tokens"], last["model"]) == (0.4, 64, "m") and "top_p" not in last
    assert chat.usage() == {"requests": 3, "cached": 0, "prompt_tokens": 30, "completion_tokens": 15, "cost": None}
    assert all(step.prompt_ids.size == step.response_ids.size == 0 for step in episode.steps)


def test_instruct_is_a_fresh_prompt_with_a_short_history():
    (episode,), server, _ = play(lambda body: say("wait"), [task("a", "blue")], INSTRUCT, max_steps=4)
    assert (len(episode.steps), episode.truncated, episode.won, episode.score) == (4, True, False, -2.0)
    assert all(len(body["messages"]) == 1 for body, _, _ in server.seen)
    history = [(step.before, step.action) for step in episode.steps[:3]]
    told = INSTRUCT.next("open the blue box", history, episode.steps[3].before, COMMANDS)
    assert server.seen[3][0]["messages"] == [{"role": "user", "content": told}]


def test_what_follows_an_answer_is_cut_off_and_what_is_none_is_malformed():
    answers = iter(
        [say("open 1") + "\nObservation: it is blue. <action>open 2</action>", "I open box 2.", say("open 3")]
    )
    (episode,), server, _ = play(lambda body: next(answers), [task("a", "blue", colours=("red", "green", "blue"))])
    assert [step.action for step in episode.steps] == ["open 1", None, "open 3"] and episode.won
    assert server.seen[1][0]["messages"][1]["content"] == say("open 1")
    assert episode.steps[1].answer == "I open box 2." and episode.steps[1].after == "nothing happens ."


def test_other_ways_to_draw_are_sent_only_if_they_are_set():
    _, server, _ = play(lambda body: say("open 1"), [task("a")], decoding=Decoding(0.7, 0.9, 20))
    assert {name: server.seen[0][0].get(name) for name in ("temperature", "top_p", "top_k")} == {
        "temperature": 0.7, "top_p": 0.9, "top_k": 20,
    }  # fmt: skip


def test_a_request_without_an_answer_fails_its_episode_alone():
    def answer(body):
        return Bad(500) if "open the green box" in body["messages"][-1]["content"] else say("open 1")

    won, lost = play(answer, [task("a"), task("b", "green")], INSTRUCT, max_steps=2)[0]
    assert (won.won, won.failure) == (True, None)
    assert not lost.won and "gave no answer in 2 tries: state 500" in lost.failure and lost.steps[0].action is None


def test_an_environment_that_breaks_fails_its_episode():
    ok, broken = play(in_turn, [task("a", "blue"), task("b", "blue", breaks=2)])[0]
    assert ok.won and ok.failure is None and broken.failure == "RuntimeError: broken at 2"


def test_nobody_there_is_an_error_at_once():
    with pytest.raises(ChatError, match="ConnectionRefusedError"):
        play(in_turn, [task("a"), task("b")], before=["http://127.0.0.1:9/v1"])


def test_eight_requests_in_a_row_without_an_answer_are_an_error():
    def answer(body):
        return Bad(500) if len(body["messages"]) > 1 else say("wait")

    few = play(answer, [task(str(n)) for n in range(7)])[0]
    assert all("state 500" in episode.failure for episode in few)
    with pytest.raises(ChatError, match="state 500"):
        play(answer, [task(str(n)) for n in range(8)])


def test_a_refused_request_ends_everything():
    with pytest.raises(ValueError, match="refuses the request with state 404"):
        play(lambda body: Bad(404), [task("a")])


def test_a_conversation_that_is_too_long_is_truncated_but_a_first_prompt_must_fit():
    (episode,), _, _ = play(lambda body: LONG if len(body["messages"]) > 3 else say("wait"), [task("a", "blue")])
    assert (len(episode.steps), episode.truncated, episode.failure) == (2, True, None)
    assert episode.steps[-1].after == "time goes by ."
    with pytest.raises(ValueError, match="task a: its first prompt is too long for the model"):
        play(lambda body: LONG, [task("a")])


def test_the_same_task_again_is_another_sample_and_a_second_run_asks_nothing(tmp_path):
    tasks = [task("a", "yellow"), task("a", "yellow"), task("b", "yellow")]  # b reads as a does
    answers = iter([say("wait"), say("open 1"), say("open 2"), *[say("wait")] * 20])
    first, server, chat = play(lambda body: next(answers), tasks, cache=tmp_path, max_steps=3)
    assert len(server.seen) == chat.usage()["requests"] == len(list(tmp_path.iterdir())) == 9
    # Requests to another server are others, so this one is asked as the first.
    again, other, chat = play(lambda body: Bad(404), tasks, cache=tmp_path, max_steps=3, before=[server.url])
    assert not other.seen and chat.usage()["cached"] == 9
    assert [[s.action for s in e.steps] for e in again] == [[s.action for s in e.steps] for e in first]
    assert sorted(e.steps[0].action for e in first) == ["open 1", "open 2", "wait"]  # no two were one request


def test_episodes_are_kept_with_their_answers():
    episodes, _, _ = play(in_turn, [task("a", "blue")])
    episodes[0].reflections = ("one", "two")
    (again,) = decode(encode(episodes))
    assert [step.answer for step in again.steps] == [step.answer for step in episodes[0].steps]
    assert again.reflections == ("one", "two") and again.trials == 3
    np.testing.assert_array_equal(again.steps[0].response_ids, [])


def test_questions_beside_the_episodes():
    def answer(body):
        return Bad(500) if body["messages"][0]["content"] == "b" else "hi"

    with serving(answer) as server, EnvPool(WORLD.make_env, slots=1, workers=0) as pool:
        chat = Chat(server.url, "m", tries=1, timeout_s=0.5)
        player = Conversations(chat, REACT, pool, max_steps=1, max_new=9)
        first, second = player.write(None, ["a", "b"], decoding=Decoding(0.2))
        assert first == "hi" and isinstance(second, ChatError)
        assert player.fits("x" * 20_000) and not player.fits("x" * 20_001)
    assert server.seen[0][0]["max_tokens"] == 9 and server.seen[0][0]["temperature"] == 0.2


def test_a_prompt_that_ends_inside_an_answer_and_too_many_tasks_are_refused():
    with pytest.raises(ValueError, match=r"set agent\.prompt=instruct or agent\.prompt=react"):
        play(in_turn, [], ShortPrompt())
    with EnvPool(WORLD.make_env, slots=1, workers=0) as pool:
        player = Conversations(Chat("http://127.0.0.1:9/v1", "m"), REACT, pool, max_steps=1, max_new=9)
        with pytest.raises(ValueError, match="2 episodes do not fit into 1 environment slots"):
            player(None, [task("a"), task("b")], [0, 1])


def test_an_empty_answer_is_malformed():
    (episode,), _, _ = play(lambda body: Bad(body=completion(None)), [task("a")], max_steps=1)
    assert (episode.steps[0].action, episode.steps[0].answer, episode.failure) == (None, "", None)

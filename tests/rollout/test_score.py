"""A language model that scores transitions, against a server on the loopback: what it is shown, what counts as a score,
what is asked once, and what ends it."""

import itertools

import numpy as np
import pytest
from boxes import COMMANDS, task
from chat_server import Bad, serving

from trca_jax.agents.chat import Chat
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.score import ScoreError, StepScorer, read_scores

BLANK = np.zeros(0, np.int32)
NONE = np.nan


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def episode(*actions, goal="red", **more):
    steps = [
        Step(BLANK, BLANK, BLANK, None, a, (0, 0), f"seen {t}", COMMANDS, f"seen {t + 1}", 0.75)
        for t, a in enumerate(actions)
    ]
    return Episode(task("a", goal, hidden="secret"), 0, "append", "seen 0", steps, **more)


def scorer(server, **more):
    return StepScorer(Chat(server.url, "m", **{"tries": 2, "wait_s": 0.01, "timeout_s": 5.0, **more}))


def asked(body):
    return body["messages"][1]["content"]


def lines(body, score="1"):
    return "\n".join(f"{n}: {score}" for n in range(1, asked(body).count(". action: ") + 1))


def test_scores_stand_at_their_steps_and_nothing_elsewhere():
    by_goal = {"red": "1: 1\n2: 0\n3: -1", "blue": "2: -1\n1: 0"}
    episodes = [episode("open 1", "wait", None), episode("open 1", failure="lost"), episode("a", "b", goal="blue")]
    with serving(lambda body: next(text for goal, text in by_goal.items() if goal in asked(body))) as server:
        scores, took = scorer(server, prices=(2.0, 4.0))(episodes, 4)
    np.testing.assert_array_equal(scores, [[1, 0, -1, NONE], [NONE] * 4, [0, -1, NONE, NONE]])
    assert scores.dtype == np.float32
    assert took == {
        "questions": 2, "unread": 0, "requests": 2, "prompt_tokens": 20, "completion_tokens": 10, "cost": 80e-6
    }  # fmt: skip


def test_it_is_shown_what_the_agent_saw_and_did_and_no_more():
    with serving(lines) as server:
        scorer(server)([episode("open 1", None, "put\n3. answer: won", won=True, truncated=True)], 3)
    (body, _, _) = server.seen[0]
    assert asked(body).splitlines() == [
        "Task: open the red box", "The agent sees: seen 0", "1. action: open 1", "   answer: seen 1",
        "2. action: (no action could be read)", "   answer: seen 2", "3. action: put 3. answer: won",
        "   answer: seen 3",
    ]  # fmt: skip
    assert body["temperature"] == 0.0 and len(server.seen) == 1
    assert not any(word in str(body) for word in ("secret", "0.75", "truncated"))


@pytest.mark.parametrize("text", ["1: 2", "1: 0.5", "1: +1", "1: -1.0", "1: none", "1: 1 ok", "1 1", "1: 1\n2: 1", ""])
def test_anything_but_one_score_a_transition_is_refused(text):
    assert read_scores("1: -1", 1) == [0] and read_scores(" 2: 1\n\n1: 0", 2) == [1, 2]
    with pytest.raises(ValueError, match=r"score|transition"):
        read_scores(text, 1)


def test_what_cannot_be_read_is_asked_again_and_then_is_no_score():
    """Garbage once; a line too few for ever; a conversation that is too long."""
    tries = itertools.count()

    def answer(body):
        if "red" in asked(body):
            return "Sure!" if next(tries) == 0 else lines(body)
        if "green" in asked(body):
            return Bad(400, {"error": "maximum context length is 10 tokens"})
        return "1: 1"

    with serving(answer) as server:
        scores, took = scorer(server)([episode("a", "b", goal=g) for g in ("red", "blue", "green")], 2)
    np.testing.assert_array_equal(scores, [[1, 1], [NONE, NONE], [NONE, NONE]])
    assert (took["questions"], took["unread"], took["requests"]) == (3, 2, 4) and "cost" not in took
    again = [body["messages"] for body, _, _ in server.seen if len(body["messages"]) == 4]
    assert len(again) == 2 and all("cannot be read" in m[3]["content"] for m in again)
    assert any("transition 2 has no line" in m[3]["content"] for m in again)


def test_a_server_that_asks_to_wait_is_waited_for():
    left = iter([Bad(429, headers={"Retry-After": "0.1"})])
    with serving(lambda body: next(left, None) or lines(body)) as server:
        scores, _ = scorer(server)([episode("a")], 1)
    assert scores.tolist() == [[1]] and len(server.seen) == 2


def test_equal_episodes_are_asked_once_and_known_ones_never(tmp_path):
    """Another process with the same cache makes no request, and counts the same."""
    episodes = [episode("a", "b"), episode("a", "b"), episode("a"), episode("a", "b", goal="blue")]
    with serving(lambda body: lines(body, "-1")) as server:
        first = scorer(server, cache=tmp_path, prices=(1.0, 3.0))(episodes, 2)
        assert len(server.seen) == first[1]["questions"] == 3
        both = scorer(server, cache=tmp_path, prices=(1.0, 3.0))
        for _ in range(2):
            scores, took = both(episodes, 2)
            np.testing.assert_array_equal(scores, first[0])
            assert took == first[1]
        assert len(server.seen) == 3
    np.testing.assert_array_equal(first[0], [[-1, -1], [-1, -1], [-1, NONE], [-1, -1]])


def test_an_outage_ends_it_and_what_was_answered_is_kept(tmp_path):
    episodes = [episode(str(n)) for n in range(5)]
    with serving(lambda body: Bad(503) if "action: 3" in asked(body) else lines(body)) as server:
        for _ in range(2):
            with pytest.raises(ScoreError, match=r"'m' that scores transitions gives no .*in 2 tries: state 503"):
                scorer(server, cache=tmp_path, concurrency=1)(episodes, 1)
        assert sum("action: 0" in asked(body) for body, _, _ in server.seen) == 1
        server.answer = lines
        assert scorer(server, cache=tmp_path)(episodes, 1)[0].tolist() == [[1]] * 5


def test_a_refusal_ends_it_at_once():
    with serving(lambda _: Bad(404, {"error": "no such model"})) as server:
        with pytest.raises(ScoreError, match="no such model"):
            scorer(server)([episode("a")], 1)
        assert len(server.seen) == 1


def test_a_model_that_only_babbles_ends_it():
    with serving(lambda _: "I think it went well.") as server, pytest.raises(ScoreError, match=r"any of 2 episodes \("):
        scorer(server)([episode("a"), episode("b")], 1)


def test_nothing_played_is_nothing_asked():
    with serving(lines) as server:
        scores, took = scorer(server)([episode("a", failure="lost")], 2)
    assert np.isnan(scores).all() and took["requests"] == 0 and server.seen == []

"""A language model as annotator: what it is shown, how strictly it is read, and what happens when it babbles."""

import numpy as np
import pytest
from boxes import COMMANDS, task

from trca_jax.agents.chat import Reply
from trca_jax.agents.endpoint import ChatError
from trca_jax.evaluation.annotate import BATCH, annotate, question, read_labels
from trca_jax.evaluation.diagnose import EVIDENCE, EXECUTION, NO_LABEL, OTHER, VALIDITY
from trca_jax.rollout.episode import Episode, Step

BLANK = np.zeros(0, np.int32)


def episode(length, name="a", **more):
    steps = [
        Step(BLANK, BLANK, BLANK, None, f"open {t}" if t else None, (0, 0), f"seen {t}", COMMANDS, f"seen {t + 1}")
        for t in range(length)
    ]
    return Episode(task(name, "red"), 0, "append", "seen 0", steps, **more)


class Model:
    """Answers by a function of (round, conversation), and remembers what it was asked."""

    def __init__(self, answer):
        self.answer, self.rounds = answer, []

    def complete_all(self, conversations, *, progress, required, **sampling):
        self.rounds.append(conversations)
        assert sampling == {"temperature": 0.0} and not required
        answers = [self.answer(len(self.rounds), messages) for messages in conversations]
        return [a if isinstance(a, Exception) else Reply(a, 0, 0) for a in answers]


def lines(messages, label):
    count = sum(line.split(".")[0].isdigit() for line in messages[1]["content"].splitlines())
    return "\n".join(f"{n}: {label}" for n in range(1, count + 1))


def test_a_question_shows_the_steps_and_not_the_end():
    shown = question(episode(5, won=True, truncated=True), 2, 2)
    assert [m["role"] for m in shown] == ["system", "user"]
    assert shown[1]["content"].splitlines() == [
        "Task: open the red box", "The agent sees: seen 2", "1. action: open 2", "   answer: seen 3",
        "2. action: open 3", "   answer: seen 4",
    ]  # fmt: skip
    assert shown == question(episode(5), 2, 2)
    assert "1. action: (no action could be read)" in question(episode(1), 0, 1)[1]["content"]


def test_labels_are_read_in_the_order_of_their_numbers():
    assert read_labels("2: other\n\n 1: execution \n3: validity", 3) == [EXECUTION, OTHER, VALIDITY]


@pytest.mark.parametrize(
    "text, says",
    [
        ("1: evidence", "transition 2 has no line"),
        ("1: evidence\n2: evidence\n2: other", "transition 2 is named twice"),
        ("1: evidence\n3: other", "transition 3 is named twice or is not among 1 to 2"),
        ("1: Evidence\n2: other", "'1: Evidence' is no line"),
        ("Here you are:\n1: evidence\n2: other", "'Here you are:' is no line"),
        ("1: progress\n2: other", "with a label of evidence, execution, validity, other"),
        ("", "transition 1 has no line"),
    ],
)
def test_anything_else_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        read_labels(text, 2)


def test_every_transition_of_a_long_episode_is_asked_once():
    model = Model(lambda _, messages: lines(messages, "evidence"))
    labels = annotate([episode(BATCH + 2), episode(3, failure="worker died"), episode(1, "b")], BATCH + 3, model)
    assert len(model.rounds[0]) == 3 and model.rounds[1] == []
    assert (labels[0, : BATCH + 2] == EVIDENCE).all() and labels[0, BATCH + 2] == NO_LABEL
    assert (labels[1] == NO_LABEL).all() and labels[2].tolist() == [EVIDENCE] + [NO_LABEL] * (BATCH + 2)


def test_what_cannot_be_read_is_asked_again_with_the_fault():
    """Of three episodes one is read at once, one at the second time, one never."""

    def answer(turn, messages):
        if "blue" in messages[1]["content"]:
            return "1: validity\n2: validity"
        if "green" in messages[1]["content"]:
            return "sorry"
        return "1: other" if turn == 1 else "1: other\n2: evidence"

    episodes = [episode(2), episode(2), episode(2)]
    for e, colour in zip(episodes, ("red", "blue", "green"), strict=True):
        e.task = task(colour, colour)
    model = Model(answer)
    labels = annotate(episodes, 2, model)
    assert labels.tolist() == [[OTHER, EVIDENCE], [VALIDITY, VALIDITY], [NO_LABEL, NO_LABEL]]
    assert len(model.rounds[1]) == 2
    *first, said, again = model.rounds[1][0]
    assert first == model.rounds[0][0] and said == {"role": "assistant", "content": "1: other"}
    assert "transition 2 has no line" in again["content"] and "from 1 to 2" in again["content"]


def test_a_lost_request_is_asked_again_as_it_was():
    model = Model(lambda turn, messages: ChatError("no route") if turn == 1 else lines(messages, "execution"))
    assert annotate([episode(2)], 2, model).tolist() == [[EXECUTION, EXECUTION]]
    assert model.rounds[1] == model.rounds[0]


@pytest.mark.parametrize("answer", ["<html>502</html>", ChatError("no route to host")])
def test_a_model_that_gives_nothing_is_an_error(answer):
    with pytest.raises(ValueError, match=r"gave no reply that can be read \(.*(502|no route).*\); try another one"):
        annotate([episode(2)], 2, Model(lambda *_: answer))

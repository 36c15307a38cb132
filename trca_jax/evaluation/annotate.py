"""A language model as annotator of transitions: one question about several consecutive steps, read strictly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

from trca_jax.agents.chat import Chat, Reply
from trca_jax.agents.endpoint import ChatError
from trca_jax.evaluation.diagnose import LABELS, NO_LABEL
from trca_jax.rollout.episode import Episode

BATCH = 25  # transitions of a question
_LINE = re.compile(rf"(\d+): ({'|'.join(LABELS)})")
_RULES = """\
You label transitions of an agent that acts in a text environment. A transition is one action and the environment's
answer to it. Give each exactly one label:

execution   the action completes an operation or meets a condition that the task requires
evidence    the answer shows something that the task needs and that was not known before
validity    the action was understood and carried out, but it is neither of the above
other       nothing of use: the output held no action, was refused, or only repeats what was done before

If two labels fit, take the one that stands higher in this list. Judge a transition by what had been seen up to its
answer, whatever comes later. Answer with one line for each transition and nothing else, as in:
1: validity
2: evidence"""
_AGAIN = "This cannot be read: {fault}. Answer again, with one line for each transition from 1 to {count}."


def question(episode: Episode, first: int, count: int) -> list[dict[str, str]]:
    """The messages that ask for labels of `count` transitions from step `first` on. Nothing tells how it ended."""
    steps = episode.steps[first : first + count]
    lines = [f"Task: {episode.task.instruction}", f"The agent sees: {steps[0].before}"]
    for number, step in enumerate(steps, 1):
        action = "(no action could be read)" if step.action is None else step.action
        lines += [f"{number}. action: {action}", f"   answer: {step.after}"]
    return [{"role": "system", "content": _RULES}, {"role": "user", "content": "\n".join(lines)}]


def read_labels(text: str, count: int) -> list[int]:
    """The labels of `count` transitions as numbers into LABELS. Raises ValueError unless each has one line of its own,
    'number: label', and there is nothing else."""
    found: dict[int, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _LINE.fullmatch(line)
        if not match:
            raise ValueError(f"{line[:60]!r} is no line 'number: label' with a label of {', '.join(LABELS)}")
        number = int(match[1])
        if number in found or not 1 <= number <= count:
            raise ValueError(f"transition {number} is named twice or is not among 1 to {count}")
        found[number] = LABELS.index(match[2])
    if missing := sorted(set(range(1, count + 1)) - set(found)):
        raise ValueError(f"transition {missing[0]} has no line")
    return [found[number] for number in range(1, count + 1)]


def annotate(
    episodes: Sequence[Episode], T: int, chat: Chat, progress: Callable[[int, int], None] = lambda done, of: None
) -> Int[np.ndarray, "R T"]:
    """The labels [R, T] of all transitions by a model, at temperature 0.

    What cannot be read is asked for once more, with the fault; if that fails too, its transitions stay without a label.
    Raises ValueError if no reply at all could be read, and as `Chat` does.
    """
    labels = np.full((len(episodes), T), NO_LABEL)
    todo = [
        (r, t, min(BATCH, len(e.steps) - t), question(e, t, BATCH))
        for r, e in enumerate(episodes) if not e.failure for t in range(0, len(e.steps), BATCH)
    ]  # fmt: skip
    for _ in range(2):
        asked, todo, fault = todo, [], None
        replies = chat.complete_all([messages for *_, messages in asked], progress=progress, temperature=0.0)
        for (r, t, count, messages), reply in zip(asked, replies, strict=True):
            try:
                labels[r, t : t + count] = read_labels(_text(reply), count)
            except ChatError as error:
                fault = error
                todo.append((r, t, count, messages))
            except ValueError as error:
                fault = error
                again = {"role": "user", "content": _AGAIN.format(fault=error, count=count)}
                said = {"role": "assistant", "content": reply.text}
                todo.append((r, t, count, [*messages, said, again]))
    if todo and (labels == NO_LABEL).all():
        raise ValueError(f"the annotating model gave no reply that can be read ({fault}); try another one")
    return labels


def _text(reply: Reply | ChatError) -> str:
    if isinstance(reply, ChatError):
        raise reply
    return reply.text

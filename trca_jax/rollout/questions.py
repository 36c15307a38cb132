"""Questions to a language model about the transitions of an episode: what is shown, and answers read strictly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from trca_jax.agents.chat import Chat, Message
from trca_jax.agents.endpoint import ChatError
from trca_jax.rollout.episode import Episode

_AGAIN = "This cannot be read: {fault}. Answer again, with one line for each transition from 1 to {count}."


def shown(episode: Episode, first: int = 0, count: int | None = None) -> str:
    """The task and `count` transitions (None: all) from step `first` on, numbered from 1: what the agent saw and did.
    Nothing tells how it ended."""
    steps = episode.steps[first:][:count]
    lines = [f"Task: {episode.task.instruction}", f"The agent sees: {steps[0].before}"]
    for number, step in enumerate(steps, 1):
        action = "(no action could be read)" if step.action is None else " ".join(step.action.split())
        lines += [f"{number}. action: {action}", f"   answer: {step.after}"]
    return "\n".join(lines)


def read_lines(text: str, count: int, kind: str, choices: Sequence[str]) -> list[int]:
    """What an answer chooses for each of `count` transitions, as places in choices.

    kind: what is chosen, for errors. Raises ValueError unless each transition has one line of its own,
    'number: choice', and there is nothing else."""
    found: dict[int, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = re.fullmatch(rf"(\d+): ({'|'.join(map(re.escape, choices))})", line)
        if not match:
            raise ValueError(f"{line[:60]!r} is no line 'number: {kind}' with a {kind} of {', '.join(choices)}")
        number = int(match[1])
        if number in found or not 1 <= number <= count:
            raise ValueError(f"transition {number} is named twice or is not among 1 to {count}")
        found[number] = choices.index(match[2])
    if missing := sorted(set(range(1, count + 1)) - set(found)):
        raise ValueError(f"transition {missing[0]} has no line")
    return [found[number] for number in range(1, count + 1)]


def ask(
    chat: Chat, questions: Sequence[tuple[Sequence[Message], int]], read: Callable[[str, int], list[int]],
    progress: Callable[[int, int], None] = lambda done, of: None, *, required: bool = False,
) -> list[list[int] | Exception]:  # fmt: skip
    """What `read` makes of the answer to each question at temperature 0, or the fault for which there is nothing.

    questions: messages, and the number of transitions that they are about. read: takes the answer and that number, and
    raises ValueError for an answer that cannot be read; that is asked for once more, with the fault. required: as
    `Chat.complete_all` takes it. Raises as that does.
    """
    found: list[list[int] | Exception] = [ValueError("it was not asked")] * len(questions)
    todo = list(range(len(questions)))
    asked = [list(messages) for messages, _ in questions]
    for _ in range(2):
        replies = chat.complete_all([asked[q] for q in todo], progress=progress, required=required, temperature=0.0)
        left = []
        for q, reply in zip(todo, replies, strict=True):
            count = questions[q][1]
            try:
                if isinstance(reply, ChatError):
                    raise reply
                found[q] = read(reply.text, count)
                continue
            except ChatError as error:
                found[q] = error
            except ValueError as error:
                found[q] = error
                again = {"role": "user", "content": _AGAIN.format(fault=error, count=count)}
                asked[q] = [*asked[q], {"role": "assistant", "content": reply.text}, again]
            left.append(q)
        todo = left
    return found

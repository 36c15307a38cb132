"""A language model as annotator of transitions: one question about several consecutive steps, read strictly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Int

from trca_jax.agents.chat import Chat
from trca_jax.evaluation.diagnose import LABELS, NO_LABEL
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.questions import ask, read_lines, shown

BATCH = 25  # transitions of a question
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


def question(episode: Episode, first: int, count: int) -> list[dict[str, str]]:
    """The messages that ask for labels of `count` transitions from step `first` on."""
    return [{"role": "system", "content": _RULES}, {"role": "user", "content": shown(episode, first, count)}]


read_labels = partial(read_lines, kind="label", choices=LABELS)  # (text, count) -> numbers into LABELS


def annotate(
    episodes: Sequence[Episode], T: int, chat: Chat, progress: Callable[[int, int], None] = lambda done, of: None
) -> Int[np.ndarray, "R T"]:
    """The labels [R, T] of all transitions by a model, at temperature 0.

    What cannot be read is asked for once more, with the fault; if that fails too, its transitions stay without a label.
    Raises ValueError if no reply at all could be read, and as `Chat` does.
    """
    labels = np.full((len(episodes), T), NO_LABEL)
    parts = [
        (r, t, min(BATCH, len(e.steps) - t))
        for r, e in enumerate(episodes) if not e.failure for t in range(0, len(e.steps), BATCH)
    ]  # fmt: skip
    questions = [(question(episodes[r], t, count), count) for r, t, count in parts]
    fault = None
    for (r, t, count), found in zip(parts, ask(chat, questions, read_labels, progress), strict=True):
        if isinstance(found, Exception):
            fault = found
        else:
            labels[r, t : t + count] = found
    if fault and (labels == NO_LABEL).all():
        raise ValueError(f"the annotating model gave no reply that can be read ({fault}); try another one")
    return labels

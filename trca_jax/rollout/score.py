"""A language model as process reward model: it scores every transition; what cannot be read is no score.

One question shows a whole episode and asks for a line a transition. A question a transition would have to repeat what
came before: T requests and T²/2 texts in place of one and T. The price is that the model could look ahead; it is told
not to, and sees neither outcome nor reward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from trca_jax.agents.chat import Chat
from trca_jax.agents.endpoint import ChatError
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.questions import ask, read_lines, shown

SCORES = ("-1", "0", "1")
_RULES = """\
You score the transitions of an agent that acts in a text environment. A transition is one action and the environment's
answer to it. Give each exactly one score:

1    the action completes an operation or meets a condition that the task requires, or the answer shows something that
     the task needs and that was not known before
0    the action was understood and carried out, but it brings the task no further
-1   nothing of use: the output held no action, was refused, repeats what was done before, or undoes progress

Judge a transition by what had been seen up to its answer, whatever comes later. Answer with one line for each
transition and nothing else, as in:
1: 0
2: 1
3: -1"""

read_scores = partial(read_lines, kind="score", choices=SCORES)


class ScoreError(ValueError):
    """No scores to learn from: the model cannot be reached, refuses, or says nothing that can be read."""


class StepScorer:
    """Called with episodes, gives the score of every transition by a model.

    chat: its cache keeps all answers, so that the same episodes are scored alike and are paid once.
    """

    def __init__(self, chat: Chat):
        self._chat = chat

    @property
    def name(self) -> str:
        """Of the model."""
        return self._chat.model

    def __call__(
        self, episodes: Sequence[Episode], T: int, progress: Callable[[int, int], None] = lambda done, of: None
    ) -> tuple[Float[np.ndarray, "R T"], dict[str, Any]]:
        """Scores -1, 0 or 1 [R, T], NaN beyond the end and where the model gave none, and what it took.

        Episodes of the same texts are asked once. What cannot be read is asked for once more, with the fault; if that
        fails too, or the episode is longer than the model takes, it has no scores. What it took: questions; unread,
        those of them without scores; requests, prompt_tokens, completion_tokens, and cost in dollars where the prices
        are known, the same whether answers come from the cache or not.
        Raises `ScoreError` if a request gets no answer in all its tries or is refused, and if no answer at all can be
        read.
        """
        numbers: dict[tuple[str, int], int] = {}
        owners = {
            r: numbers.setdefault((shown(e), len(e.steps)), len(numbers))
            for r, e in enumerate(episodes) if e.steps and not e.failure
        }  # fmt: skip
        rules = {"role": "system", "content": _RULES}
        questions = [([rules, {"role": "user", "content": text}], count) for text, count in numbers]
        before = self._chat.usage()
        try:
            answers = ask(self._chat, questions, read_scores, progress, required=True)
        except (ChatError, ValueError) as error:
            raise ScoreError(
                f"the model {self.name!r} that scores transitions gives no answer ({error}). Mend it and start the "
                "same command again: what it has answered is kept"
            ) from None
        faults = [answer for answer in answers if isinstance(answer, Exception)]
        if faults and len(faults) == len(answers):
            raise ScoreError(
                f"the model {self.name!r} gave no scores that can be read to any of {len(answers)} episodes "
                f"({faults[-1]}); try another one, in another folder"
            )
        scores = np.full((len(episodes), T), np.nan, np.float32)
        for r, number in owners.items():
            if not isinstance(answers[number], Exception):
                scores[r, : len(answers[number])] = [float(SCORES[place]) for place in answers[number]]
        after = self._chat.usage()
        spent = {name: after[name] - before[name] for name in ("requests", "prompt_tokens", "completion_tokens")}
        cost = self._chat.cost(spent["prompt_tokens"], spent["completion_tokens"])
        took = {"questions": len(questions), "unread": len(faults), **spent} | ({} if cost is None else {"cost": cost})
        return scores, took

"""Episodes played by a chat model behind an endpoint, with the prompts that a policy gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trca_jax.agents.chat import Chat, Reply
from trca_jax.agents.endpoint import ChatError, ContextFull
from trca_jax.agents.prompts import Prompt
from trca_jax.envs.base import Task
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.decoding import Decoding
from trca_jax.rollout.episode import Episode, Step

_IN_A_ROW = 8  # requests without an answer, after which nobody is there
_LONGEST = 20_000  # characters of a question outside of episodes


class Conversations:
    """Plays episodes as a `Collector` does; parameters and random keys are the model's own affair and passed over.

    An episode whose request gets no usable answer has failed, as if its environment had; one whose conversation the
    model cannot take any more is truncated. max_new: tokens of an answer at most; what follows its end is cut off.
    Raises ValueError for a prompt that ends inside an answer.
    """

    def __init__(self, chat: Chat, prompt: Prompt, pool: EnvPool, *, max_steps: int, max_new: int):
        if prompt.opened:
            raise ValueError("an endpoint is asked in whole messages; set agent.prompt=instruct or agent.prompt=react")
        self._chat, self._prompt, self._pool = chat, prompt, pool
        self._max_steps, self._max_new = max_steps, max_new
        self._played: Counter[tuple[str, str]] = Counter()
        self._missed, self._heard = 0, False

    def __call__(
        self, params, tasks: Sequence[Task], groups: Sequence[int], key=None,
        on_turn: Callable[[int, int], None] = lambda turn, live: None, *, first: int = 0,
        decoding: Decoding = Decoding(),  # noqa: B008
    ) -> list[Episode]:  # fmt: skip
        """One episode a task; tasks may be fewer than slots. on_turn(turn, live) reports progress.

        Raises ValueError if a request is refused or the first prompt is too long for the model, and `ChatError` if the
        first requests of all, or 8 one after another, got no answer.
        """
        if len(tasks) > self._pool.slots:
            raise ValueError(f"{len(tasks)} episodes do not fit into {self._pool.slots} environment slots")
        episodes = [Episode(t, g, self._prompt.layout) for t, g in zip(tasks, groups, strict=True)]
        talks: list[list[dict[str, str]]] = [[] for _ in tasks]
        samples = [self._sample(task) for task in tasks]
        live, turn = list(range(len(tasks))), 0
        self._pool.reset(live, tasks)
        while live:
            acting = []
            for i, seen in zip(live, self._pool.receive(live), strict=True):
                if episodes[i].observe(seen):
                    if len(episodes[i].steps) < self._max_steps:
                        self._extend(episodes[i], talks[i], seen)
                        acting.append(i)
                    else:
                        episodes[i].truncated = True
            replies = self._ask([talks[i] for i in acting], [samples[i] for i in acting], decoding)
            live = [i for i, reply in zip(acting, replies, strict=True) if self._answer(episodes[i], talks[i], reply)]
            self._pool.step(live, [episodes[i].steps[-1].sent(self._prompt.whole) for i in live])
            turn += 1
            on_turn(turn, len(live))
        return episodes

    def fits(self, text: str) -> bool:
        """Whether `write` should be given this text."""
        return len(text) <= _LONGEST

    def write(
        self, params, texts: Sequence[str], key=None, *, first: int = 0,
        decoding: Decoding = Decoding(),  # noqa: B008
    ) -> list[str | ChatError]:  # fmt: skip
        """Answers to texts outside of episodes, or why there is none."""
        samples = [texts[:i].count(text) for i, text in enumerate(texts)]
        replies = self._ask([[_message("user", text)] for text in texts], samples, decoding)
        return [reply.text if isinstance(reply, Reply) else reply for reply in replies]

    def _sample(self, task: Task) -> str:
        """Names the answers of an episode: each task has its own, and each time that it begins with the same words."""
        told = (task.id, task.instruction)
        self._played[told] += 1
        return f"{task.id}/{self._played[told] - 1}"

    def _extend(self, episode: Episode, talk: list[dict[str, str]], seen) -> None:
        """Puts the next prompt behind the conversation, or in its place."""
        if self._prompt.layout == "stepwise":
            talk.clear()
        instruction, history = episode.task.instruction, [(step.before, step.action or "") for step in episode.steps]
        if history:
            text = self._prompt.next(instruction, history, seen.text, seen.admissible)
        else:
            text = self._prompt.first(instruction, seen.text, seen.admissible)
        talk.append(_message("user", text))
        ids, logp = np.zeros(0, np.int32), np.zeros(0, np.float32)
        episode.steps.append(Step(ids, ids, logp, None, None, (0, 0), seen.text, seen.admissible))

    def _ask(self, talks, samples: Sequence[int | str], decoding: Decoding) -> list[Reply | ChatError]:
        sampling: dict[str, Any] = {"temperature": decoding.temperature, "max_tokens": self._max_new}
        if decoding.top_p < 1:
            sampling["top_p"] = decoding.top_p
        if decoding.top_k:
            sampling["top_k"] = decoding.top_k
        replies = self._chat.complete_all(talks, samples=samples, **sampling)
        for reply in replies:
            lost = isinstance(reply, ChatError) and not isinstance(reply, ContextFull)
            self._missed, self._heard = (self._missed + 1, self._heard) if lost else (0, True)
            if self._missed >= _IN_A_ROW:
                raise reply
        if replies and not self._heard:
            raise replies[0]
        return replies

    def _answer(self, episode: Episode, talk: list[dict[str, str]], reply: Reply | ChatError) -> bool:
        """Takes in the answer to the last prompt; whether there is an action to play."""
        if isinstance(reply, ContextFull):
            if len(episode.steps) == 1:
                raise ValueError(f"task {episode.task.id}: its first prompt is too long for the model; {reply}")
            episode.steps.pop()
            episode.truncated = True
            return False
        if isinstance(reply, ChatError):
            episode.failure = str(reply)
            return False
        step = episode.steps[-1]
        step.answer = _cut(reply.text, self._prompt.stops)
        step.action = self._prompt.read(step.answer).action
        talk.append(_message("assistant", step.answer))
        return True


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _cut(text: str, stops: Sequence[str]) -> str:
    """The text up to the end of the first stop string in it."""
    ends = [at + len(stop) for stop in stops if (at := text.find(stop)) >= 0]
    return text[: min(ends, default=len(text))]

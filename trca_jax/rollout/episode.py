"""Records of what was played."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trca_jax.envs.base import Observation, Task


@dataclass
class Step:
    """One decision and what it caused.

    prompt_ids: tokens put before the answer (all of the prompt in the stepwise layout, what was added to the row in the
    append layout). response_ids [n] sampled, never made from text. behaviour_logp [n] of the sampling distribution.
    allowed: bits [n, V/8] of the tokens that could be sampled, None if all. action: parsed, None if malformed.
    action_span: tokens [first, last) of the response inside the action tags. before: the observation that was answered,
    admissible: the commands offered with it. after, reward: what the action brought. answer: its text, where any could
    be given; an endpoint's answer is its text alone, and the tokens are empty.
    """

    prompt_ids: np.ndarray
    response_ids: np.ndarray
    behaviour_logp: np.ndarray
    allowed: np.ndarray | None
    action: str | None
    action_span: tuple[int, int]
    before: str
    admissible: tuple[str, ...]
    after: str = ""
    reward: float = 0.0
    answer: str = ""

    def sent(self, whole: bool) -> str:
        """What the environment gets. whole: as `Prompt.whole`."""
        return self.answer if whole else self.action or ""


@dataclass
class Episode:
    """One rollout. group: index of its task in the batch. won: the environment said so. truncated: the step limit or
    the room for tokens ended it. failure: the infrastructure broke; such an episode counts nowhere. reflections: what
    was noted after earlier, failed trials at the task (Reflexion)."""

    task: Task
    group: int
    layout: str
    first_observation: str = ""
    steps: list[Step] = field(default_factory=list)
    won: bool = False
    truncated: bool = False
    failure: str | None = None
    reflections: tuple[str, ...] = ()

    def observe(self, seen: Observation) -> bool:
        """Takes in what the environment answers to a reset or to the last step; whether the episode goes on."""
        if seen.failure is not None:
            self.failure = seen.failure
            return False
        if self.steps:
            step = self.steps[-1]
            step.after, step.reward = seen.text, seen.reward
            self.won = seen.won
        else:
            self.first_observation = seen.text
        return not seen.done

    @property
    def trials(self) -> int:
        """How often the task was tried, this time included."""
        return len(self.reflections) + 1

    @property
    def score(self) -> float:
        """Sum of the environment's rewards."""
        return sum(step.reward for step in self.steps)

"""A benchmark that lives outside of trca_jax: open the chest of the right colour."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from chests.engine import COLOURS, DRAWERS, ChestsEnv
from chests.facts import DECLARATION, Adapter, read_goal
from trca_jax.envs.base import Task, TaskSet
from trca_jax.rubrics.library import read_library


@dataclass
class Player:
    """Follows the plan with probability `share` a step: search, take the key, unlock, open."""

    adapter: Adapter
    rng: Random
    share: float

    def act(self, admissible):
        goal, known = self.adapter.goal, self.adapter
        plan = [f"open {goal} chest", f"unlock {goal} chest", f"take {goal} key"]
        plan += [f"open drawer {number}" for number in DRAWERS if number not in known.searched]
        planned = [command for command in plan if command in admissible]
        return planned[0] if planned and self.rng.random() < self.share else self.rng.choice(admissible)


@dataclass(frozen=True)
class Chests:
    source: str = "generated"
    task_types: tuple[str, ...] = ("chest",)
    seed: int = 0

    name, declaration, offers = "chests", DECLARATION, frozenset()
    role = "You act in a study to open a chest."

    @cached_property
    def library(self):
        return read_library(
            Path(__file__).with_name("rubric.toml"), DECLARATION.facts, DECLARATION.fields, DECLARATION.contexts
        )

    def tasks(self, split, count=None):
        made = [self._task(f"{split}-{number:04}") for number in range(count or 256)]
        digest = hashlib.sha256(repr([(task.id, task.payload) for task in made]).encode()).hexdigest()
        return TaskSet(tuple(made), self.source, split, digest)

    def _task(self, name):
        rng = Random(f"{self.seed}/{name}")
        goal, keys = rng.choice(COLOURS), dict(zip(rng.sample(DRAWERS, 3), COLOURS, strict=True))
        return Task(name, self.name, f"open the {goal} chest", "chest", {"goal": goal, "keys": keys})

    def prepare(self, tasks, progress):
        progress(len(tasks), len(tasks))

    def brief(self, text):
        return " ".join(re.findall(r"\w+", text.lower()))

    def vocabulary(self):
        return " ".join((*COLOURS, *DRAWERS, "nothing happens"))

    def make_env(self):
        return ChestsEnv()

    def bind(self, task):
        return {"goal": read_goal(task.instruction)}

    def adapter(self, task, first_observation):
        return Adapter(read_goal(task.instruction))

    def demonstrator(self, adapter, rng, share):
        return Player(adapter, rng, share)

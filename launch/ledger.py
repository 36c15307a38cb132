"""What one episode is credited: the judge and the reward functions of training, on a batch of a single rollout."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from ml_collections import ConfigDict

from trca_jax import credit
from trca_jax.credit.rewards import breakthrough_reward, coverage, foundational_reward, item_weights
from trca_jax.credit.trca import TRCASettings
from trca_jax.envs.base import Task
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.judge import credit_batch, transitions
from trca_jax.rollout.world import World
from trca_jax.rubrics.schema import CATEGORIES


@dataclass(frozen=True)
class Item:
    """A judged item that the task binds. name: of the operator, with the member of its set. weight: w_j, signed."""

    name: str
    category: str
    weight: float
    doc: str


@dataclass(frozen=True)
class Part:
    """What one category adds to a transition. fired: its items, and whether each does so for the first time.
    foundational, breakthrough: its share of r_F and r_B."""

    category: str
    weight: float
    fired: tuple[tuple[str, bool], ...]
    foundational: float
    breakthrough: float


@dataclass(frozen=True)
class Entry:
    """One transition. parts: the categories in which an item fired. r_env, foundational, breakthrough, rubric: rewards,
    rubric = (1−λ)·r_F + λ·r_B. to_come: the return G_t from here on. so_far: the return of the episode's start up to
    here. context, number: the decision context before the action, and which one of the episode it is, from 1."""

    parts: tuple[Part, ...]
    r_env: float
    foundational: float
    breakthrough: float
    rubric: float
    to_come: float
    so_far: float
    context: Mapping[str, Hashable]
    number: int


@dataclass(frozen=True)
class Ledger:
    """items: all that can be judged here, in the rubric's order. entries: one a transition. covered: names of the items
    that have fired."""

    items: tuple[Item, ...]
    entries: tuple[Entry, ...]
    covered: frozenset[str]


class Bookkeeper:
    """Called with an episode, at any time while it goes on or after it, gives its Ledger.

    config: credit.trca, and env.max_steps, which an episode may not pass. Advantages are not in it: they compare the
    rollouts of a group, and one rollout has none to be compared with.
    """

    def __init__(self, world: World, config: ConfigDict) -> None:
        self._world, self._steps = world, config.env.max_steps
        self.settings = TRCASettings(**config.credit.trca)
        self._credit = credit.make("trca", **config.credit.trca)

    def __call__(self, episode: Episode) -> Ledger:
        benchmark, judge, s = self._world.benchmark, self._world.judge, self.settings
        batch = credit_batch([episode], benchmark, judge, max_steps=self._steps)
        given = self._credit(batch)
        judged, bound = np.asarray(batch.judgement[0], bool), np.flatnonzero(batch.item_mask[0])
        budgets = {"evidence": s.evidence, "invalidity": s.invalidity, "execution": s.execution}
        per_item = s.budget_mode == "item"
        weight = np.asarray(item_weights(judge.category, batch.item_mask[0], **budgets, per_item=per_item))
        covered = np.asarray(coverage(judged)) > 0
        new = covered & ~np.pad(covered, ((1, 0), (0, 0)))[:-1]
        items = self._items(episode.task, weight)
        shares = []
        for number in range(len(CATEGORIES)):
            own = np.where(judge.category == number, weight, 0)
            shares.append((np.asarray(foundational_reward(judged, own)), np.asarray(breakthrough_reward(judged, own))))

        def part(t: int, number: int) -> Part | None:
            here = [j for j in bound if judge.category[j] == number and judged[t, j]]
            if not here:
                return None
            fired = tuple((items[j].name, bool(new[t, j])) for j in here)
            foundational, breakthrough = (float(share[t]) for share in shares[number])
            return Part(CATEGORIES[number], float(weight[here[0]]), fired, foundational, breakthrough)

        _, known = transitions(episode, benchmark)
        discounts = s.gamma ** np.arange(self._steps)
        gains = s.terminal_scale * batch.r_env[0] + np.asarray(given.rubric[0])
        entries = tuple(
            Entry(
                parts=tuple(p for number in range(len(CATEGORIES)) if (p := part(t, number))),
                r_env=float(batch.r_env[0, t]),
                foundational=float(given.foundational[0, t]),
                breakthrough=float(given.breakthrough[0, t]),
                rubric=float(given.rubric[0, t]),
                to_come=float(given.returns[0, t]),
                so_far=float(discounts[: t + 1] @ gains[: t + 1]),
                context={name: known[t][name] for name in judge.library.context},
                number=int(batch.context[0, t]) + 1,  # numbered as they come
            )
            for t in range(batch.length[0])
        )
        seen = frozenset(items[j].name for j in bound if covered[-1, j])
        return Ledger(tuple(items[j] for j in bound), entries, seen)

    def _items(self, task: Task, weight: np.ndarray) -> list[Item]:
        """Every item of the judge, whether it is bound or not."""
        judge, library = self._world.judge, self._world.judge.library
        binding = self._world.benchmark.bind(task)
        operators = {operator.name: operator for operator in library.operators}
        items = []
        for j, name in enumerate(judge.items):
            base, _, slot = name.partition("[")
            operator = operators[base]
            if operator.each:
                members = [m for m in dict.fromkeys(binding.get(operator.each) or ()) if m is not ...]
                at = int(slot[:-1])
                name = f"{base}[{members[at]}]" if at < len(members) else name
            items.append(Item(name, operator.category, float(weight[j]), operator.doc))
        return items

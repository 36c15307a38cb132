"""Shopping tasks: which goals belong to which split, and what a run writes down about them.

Source: spec/webshop.md sections 3, 7 and 10.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from trca_jax.envs.base import Task, TaskSet
from trca_jax.envs.webshop.ceiling import unreachable
from trca_jax.envs.webshop.data import GENERATED, load_shop
from trca_jax.envs.webshop.goals import Goal, GoalList, make_goals

CATEGORIES = ("beauty", "electronics", "fashion", "garden", "grocery")
SPLITS = ("train", "dev", "test")
SPLIT_BYS = ("clean", "product")
_TEST, _DEV = 500, 1000  # goals, by the paper
_EVALUATION = 1000  # verl-agent's evaluation workers seed their goals so much higher


@dataclass(frozen=True)
class Errand:
    """A task's payload: the goal, hidden from the agent, and the seed that the shop's prices are drawn with."""

    goal: Goal
    seed: int


@lru_cache(maxsize=8)
def goal_list(source: str, kind: str, compat: str, seed: int) -> GoalList:
    """`make_goals` of a catalogue, once a process."""
    return make_goals(load_shop(source).products, kind=kind, compat=compat, seed=seed)


def load_tasks(
    source: str, split: str, *, task_types: Iterable[str] | None = None, count: int | None = None, seed: int = 0,
    goals: str = "synthetic", compat: str = "webshop", split_by: str = "clean",
) -> TaskSet:  # fmt: skip
    """The tasks of one split, the same on every machine.

    source: as `data.load_products`. split: test is the first 500 goals in the list's order, dev the next 1000, train
    the rest. task_types: only goals for products of these categories. count: how many, drawn evenly over the
    categories; by default all. seed: of prices, price bounds and (verl-agent) order. goals: 'synthetic' or 'human'.
    compat: 'webshop' keeps one list for all splits; 'verl-agent' orders the list by the seed and makes its test split
    from the list of seed + 1000, as its evaluation workers do, so that most test goals are training goals too; it has
    no dev split. split_by: 'clean' keeps goals apart, 'product' keeps products apart as well (in proportion 500 : 1000
    : rest). The set's source says how many goals cannot score 1 by buying their own product (`ceiling`, WebShop's own
    option match).
    Raises ValueError for unknown names and for splits without goals.
    """
    kinds = _kinds(task_types)
    if split_by not in SPLIT_BYS or split not in SPLITS:
        raise ValueError(
            f"WebShop split {split!r} by {split_by!r} is unknown; expected one of {', '.join(SPLITS)} and one of "
            f"{', '.join(SPLIT_BYS)}"
        )
    if compat == "verl-agent":
        if split == "dev" or split_by != "clean":
            raise ValueError("compat 'verl-agent' has the splits train and test, by 'clean'; use compat 'webshop' here")
        if split == "test":
            seed += _EVALUATION
    listed = goal_list(source, goals, compat, seed)
    numbers = _by_product(listed, split) if split_by == "product" else _in_order(len(listed), split, compat)
    chosen = [number for number in numbers if listed.goals[number].product.category in kinds]
    where = f"{source}: {len(listed)} {goals} goals"
    if not chosen:
        raise ValueError(
            f"{where} leave none for split {split} in {', '.join(kinds)}; a list needs more than {_TEST + _DEV} goals "
            "for all splits, and the small set has 13 human ones, so use synthetic goals there"
        )
    if count is not None:
        chosen = _even(chosen, listed, kinds, count, where)
    digest = hashlib.sha256(f"{listed.sha1} {seed}".encode())
    tasks = []
    for number in sorted(chosen):
        goal = listed.goals[number]
        digest.update(f"{number}\0{goal.text}\0".encode("utf-8", "surrogatepass"))
        name = f"{split}/{goal.product.category}/{goals}-{compat}-{seed}/{number:05d}"
        tasks.append(Task(name, "webshop", goal.text, goal.product.category, Errand(goal, seed)))
    tasks.sort(key=lambda task: task.id)
    place = "the generated catalogue" if source == GENERATED else f"folder {Path(source).name}"
    priced = ((task.payload.goal, listed.prices[task.payload.goal.product.asin]) for task in tasks)
    described = (
        f"{place}, {goals} goals, compat {compat}, split by {split_by}, seed {seed}, goal sha1 {listed.sha1}, "
        f"{len(unreachable(priced))} of these tasks out of reach of their own product"
    )
    return TaskSet(tuple(tasks), described, split, digest.hexdigest())


def _kinds(task_types: Iterable[str] | None) -> tuple[str, ...]:
    kinds = tuple(CATEGORIES if task_types is None else task_types)
    if not kinds or (unknown := set(kinds) - set(CATEGORIES)):
        raise ValueError(
            f"unknown WebShop categories {sorted(unknown) if kinds else 'none'}; expected some of "
            f"{', '.join(CATEGORIES)}"
        )
    return kinds


def _in_order(size: int, split: str, compat: str) -> range:
    if split == "test":
        return range(min(_TEST, size))
    first = _TEST if split == "dev" or compat == "verl-agent" else _TEST + _DEV
    return range(first, min(_TEST + _DEV, size) if split == "dev" else size)


def _by_product(listed: GoalList, split: str) -> list[int]:
    """Whole products in turn, in an order of their own, to test, dev and train until each has its share of goals."""
    of: dict[str, list[int]] = {}
    for number, goal in enumerate(listed.goals):
        of.setdefault(goal.product.asin, []).append(number)
    asins = sorted(of)
    Random(0).shuffle(asins)
    size = len(listed)
    room = {"test": min(_TEST, size // 6), "dev": min(_DEV, size // 3), "train": size}
    shares: dict[str, list[int]] = {name: [] for name in room}
    for asin in asins:
        name = next(name for name, most in room.items() if len(shares[name]) + len(of[asin]) <= most)
        shares[name] += of[asin]
    return sorted(shares[split])


def _even(
    numbers: Sequence[int], listed: GoalList, kinds: Sequence[str], count: int, where: str
) -> list[int]:  # fmt: skip
    """`count` goals, the first of each category in turn."""
    if not 1 <= count <= len(numbers):
        raise ValueError(f"{count} tasks asked for, but {where} give 1 to {len(numbers)} here; ask for fewer")
    pools: dict[str, list[int]] = {kind: [] for kind in kinds}
    for number in reversed(numbers):
        pools[listed.goals[number].product.category].append(number)
    chosen: list[int] = []
    while len(chosen) < count:
        chosen += [pool.pop() for pool in pools.values() if pool][: count - len(chosen)]
    return chosen

"""Questions as tasks: which sets belong to which split, and what a run writes down about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

from trca_jax.envs.base import Task, TaskSet
from trca_jax.envs.searchqa import generator
from trca_jax.envs.searchqa.datasets import EVAL, SETS, TRAIN_SETS, read_questions
from trca_jax.envs.searchqa.questions import Question
from trca_jax.envs.searchqa.sources import GENERATED

BENCHMARK = "searchqa"


def load_tasks(
    source: str, split: str, *, task_types: Iterable[str] | None = None, count: int | None = None, seed: int = 0
) -> TaskSet:
    """The questions of one split, the same on every machine. A task's payload is its `Question`, labels and all.

    source: 'generated', or a folder or file as `read_questions` takes it. split: train, dev, test, or eval (test, and
    dev of a set that has no test). task_types: of the generated world the kinds 'single' and 'bridge'; else sets of
    questions, by default NQ and HotpotQA for train and all seven otherwise. A task's kind is that of the generated
    question, or the set it is from, so that results are reported by it. count: how many, drawn with the seed, evenly
    over the kinds; by default all.
    Raises ValueError for unknown names, a count that is not there, and files as `read_questions` does.
    """
    kinds = tuple(kind for kind in task_types or () if kind)
    if source == GENERATED:
        kinds = kinds or generator.KINDS
        if unknown := sorted(set(kinds) - set(generator.KINDS)):
            raise ValueError(
                f"unknown kinds {unknown} of generated questions; expected some of {', '.join(generator.KINDS)}, or "
                "set env.data to a folder with other sets"
            )
        found = generator.questions("test" if split == EVAL else split)
        chosen = [(q.kind, q) for q in found if q.kind in kinds]
        place = f"the generated world of {len(generator.corpus())} passages"
    else:
        kinds = kinds or (TRAIN_SETS if split == "train" else SETS)
        chosen = [(q.source, q) for q in read_questions(source, kinds, split)]
        place = f"{Path(source).name}: {', '.join(kinds)}"
    if count is not None:
        chosen = _even(chosen, kinds, count, seed, place)
    chosen.sort(key=lambda pair: pair[1].id)
    digest = hashlib.sha256()
    for _, q in chosen:
        content = "\0".join((q.id, q.question, *q.golden_answers, ""))
        digest.update(content.encode("utf-8", "surrogatepass"))
    tasks = tuple(Task(q.id, BENCHMARK, q.question, kind, q) for kind, q in chosen)
    return TaskSet(tasks, place, split, digest.hexdigest())


def _even(
    questions: Sequence[tuple[str, Question]], kinds: Sequence[str], count: int, seed: int, place: str
) -> list[tuple[str, Question]]:
    """`count` questions, one of each kind in turn."""
    if not 1 <= count <= len(questions):
        raise ValueError(f"{count} questions asked for, but {place} has 1 to {len(questions)} here; ask for fewer")
    pools: dict[str, list[tuple[str, Question]]] = {kind: [] for kind in kinds}
    for pair in questions:
        pools[pair[0]].append(pair)
    for kind, pool in pools.items():
        Random(f"{seed}/{kind}").shuffle(pool)
    chosen: list[tuple[str, Question]] = []
    while len(chosen) < count:
        chosen += [pool.pop() for pool in pools.values() if pool][: count - len(chosen)]
    return chosen

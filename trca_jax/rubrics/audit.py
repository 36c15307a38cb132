"""What a rubric library does on given episodes: what fires, what never does, what says the same, and what is missed.

Arrays alone, in float64 on the host; axes R rollouts, T steps, J items. Everywhere `fired` [R,T,J] is the judgement of
bound items at real steps (`real_judgement`), bound [R,J] says which items the task binds, length [R] how many steps are
real, and won [R] which rollouts succeeded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped


def real_steps(length: Int[np.ndarray, "R"], T: int) -> Bool[np.ndarray, "R T"]:
    """Which steps are before the rollout's end."""
    return np.arange(T) < np.asarray(length)[:, None]


def real_judgement(
    judgement: Shaped[np.ndarray, "R T J"], bound: Shaped[np.ndarray, "R J"], length: Int[np.ndarray, "R"]
) -> Bool[np.ndarray, "R T J"]:
    """The judgement where it counts."""
    real = real_steps(length, judgement.shape[1])
    return np.asarray(judgement, bool) & np.asarray(bound, bool)[:, None] & real[..., None]


def rates(
    fired: Bool[np.ndarray, "R T J"], bound: Bool[np.ndarray, "R J"], length: Int[np.ndarray, "R"]
) -> tuple[Float[np.ndarray, "J"], Float[np.ndarray, "J"]]:
    """The share of the transitions in which each item fired, and the share of the rollouts in which it ever did; of
    those that bind it, NaN where none does."""
    steps = (bound * np.asarray(length)[:, None]).sum(axis=0)
    played = (bound & (np.asarray(length) > 0)[:, None]).sum(axis=0)
    return _divide(fired.sum(axis=(0, 1)), steps), _divide(fired.any(axis=1).sum(axis=0), played)


def overlap(
    fired: Bool[np.ndarray, "R T J"], bound: Bool[np.ndarray, "R J"], length: Int[np.ndarray, "R"]
) -> tuple[Float[np.ndarray, "J J"], Float[np.ndarray, "J J"]]:
    """How much two items say the same, over the transitions that bind both: Jaccard |A∩B|/|A∪B| and φ (`phi`); NaN
    where neither fires, and for φ also where one is constant."""
    weight = np.asarray(length, float)
    x, b = fired.astype(float), bound.astype(float)
    both = np.einsum("rtj,rtk->jk", x, x)
    one = np.einsum("rtj,rk->jk", x, b)  # fires where the other is bound
    n = np.einsum("r,rj,rk->jk", weight, b, b)
    return _divide(both, one + one.T - both), phi(both, one - both, one.T - both, n - one - one.T + both)


def phi(n11, n10, n01, n00) -> Float[np.ndarray, "..."]:
    """φ = (n11·n00 − n10·n01)/√((n11+n10)(n01+n00)(n11+n01)(n10+n00)): the correlation of two yes/no variables from the
    counts of their four combinations; NaN where one of them is constant."""
    a, b, c, d = (np.asarray(n, float) for n in (n11, n10, n01, n00))
    return _divide(a * d - b * c, np.sqrt((a + b) * (c + d) * (a + c) * (b + d)))


def foretells(
    fired: Bool[np.ndarray, "R T J"], bound: Bool[np.ndarray, "R J"], length: Int[np.ndarray, "R"],
    won: Bool[np.ndarray, "R"],
) -> tuple[Float[np.ndarray, "J"], Float[np.ndarray, "J"], Float[np.ndarray, "J"]]:  # fmt: skip
    """The success of rollouts in which an item fired at least once, that of the rest, and φ between the two; over the
    rollouts that bind it, NaN where there is nothing to compare. A correlation: hard tasks may explain it."""
    ever = fired.any(axis=1)
    played = bound & (np.asarray(length) > 0)[:, None]
    won = np.asarray(won, bool)[:, None]
    n11, n10 = (played & ever & won).sum(0), (played & ever & ~won).sum(0)
    n01, n00 = (played & ~ever & won).sum(0), (played & ~ever & ~won).sum(0)
    return _divide(n11, n11 + n10), _divide(n01, n01 + n00), phi(n11, n10, n01, n00)


def is_known(values: Shaped[np.ndarray, "R T ..."]) -> Bool[np.ndarray, "R T"]:
    """Where a fact, encoded as `schema.encode_facts` does, has a value."""
    if values.ndim > 2:
        return (values != 0).any(axis=2)
    return ~np.isnan(values) if values.dtype.kind == "f" else values != (-1 if values.dtype == np.int8 else 0)


def novel(values: Shaped[np.ndarray, "R T ..."], known: Bool[np.ndarray, "R T"]) -> Bool[np.ndarray, "R T"]:
    """Where a fact takes a value that it did not have before in the rollout.

    The value that it has most often in all of them, such as 'nothing', is never new, nor is any at the first step, as
    there is nothing to compare with.
    """
    rollouts, steps = values.shape[:2]
    flat = np.nan_to_num(values.reshape(rollouts * steps, -1), nan=-1.0)
    ids = np.unique(flat, axis=0, return_inverse=True)[1].reshape(rollouts, steps)
    usual = np.bincount(ids[known], minlength=1).argmax()
    earlier = np.tri(steps, k=-1, dtype=bool)
    seen = ((ids[:, :, None] == ids[:, None, :]) & earlier).any(axis=2)
    return known & ~seen & (ids != usual) & (np.arange(steps) > 0)


def trend(values: Float[np.ndarray, "I ..."]) -> Float[np.ndarray, "..."]:
    """t = r·√((n−2)/(1−r²)) of the correlation r with the number of the iteration: above 2 it rises, below −2 it falls.
    0 for fewer than 4 iterations and for constant values; iterations are taken as independent."""
    y = np.asarray(values, float)
    n = len(y)
    if n < 4:
        return np.zeros(y.shape[1:])
    x = np.arange(n) - (n - 1) / 2
    dy = y - y.mean(axis=0)
    scale = np.sqrt((x @ x) * (dy**2).sum(axis=0))
    r = np.divide(np.tensordot(x, dy, axes=1), scale, out=np.zeros(y.shape[1:]), where=scale > 1e-12)
    return r * np.sqrt((n - 2) / np.maximum(1 - r**2, 1e-12))


def paid_for_nothing(items: Float[np.ndarray, "I J"], success: Float[np.ndarray, "I"]) -> Bool[np.ndarray, "J"]:
    """Signs of reward hacking: items whose rate rises over the iterations (`trend` above 2) while success does not."""
    return (trend(items) > 2) & (trend(success) <= 2)


@dataclass(frozen=True)
class BlindSpot:
    """Transitions by one template of action that changed what is observable, but fired nothing.

    count: of them. of: transitions by this template. rollouts: that hold one. won: success of those rollouts.
    changes: how many changed each field or fact, the most frequent first. example: rollout and step of one.
    """

    template: str
    count: int
    of: int
    rollouts: int
    won: float
    changes: dict[str, int]
    example: tuple[int, int]


def blind_spots(
    fired: Bool[np.ndarray, "R T J"], changed: Mapping[str, Bool[np.ndarray, "R T"]],
    templates: Sequence[Sequence[str]], won: Bool[np.ndarray, "R"],
) -> list[BlindSpot]:  # fmt: skip
    """The blind spots by template, the largest first. changed: which transitions changed each field or fact.
    templates: of the actions of every rollout, as long as its real steps."""
    total = Counter(name for row in templates for name in row)
    real = real_steps(np.array([len(row) for row in templates], int), fired.shape[1])
    any_change = np.logical_or.reduce([*changed.values(), np.zeros_like(real)])
    found = defaultdict(list)
    for r, t in np.argwhere(any_change & real & ~fired.any(axis=2)).tolist():
        found[templates[r][t]].append((r, t))
    spots = []
    for template, places in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        where = tuple(np.array(places).T)
        changes = Counter({name: int(array[where].sum()) for name, array in changed.items()})
        rollouts = np.unique(where[0])
        spots.append(BlindSpot(
            template, len(places), total[template], len(rollouts), float(np.asarray(won)[rollouts].mean()),
            {name: n for name, n in changes.most_common() if n}, places[0],
        ))  # fmt: skip
    return spots


def _divide(part, whole) -> Float[np.ndarray, "..."]:
    part, whole = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)

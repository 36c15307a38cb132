"""Scripted play for demonstrations: a searcher that knows no more than the adapter, and noise that wanders about."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from trca_jax.envs.alfworld.facts import AlfworldAdapter
from trca_jax.envs.alfworld.feedback import type_of
from trca_jax.envs.alfworld.knowledge import NOTHING

# How often a look at such a place is worth it, by how much tends to lie there; 1 for those not named.
_PROMISE = {
    **dict.fromkeys(("countertop", "diningtable", "desk", "dresser", "sidetable", "coffeetable", "bed"), 6),
    **dict.fromkeys(("sofa", "shelf", "sinkbasin", "fridge", "garbagecan", "armchair", "tvstand", "toilet"), 3),
}
_CHEAP = ("look", "inventory", "open", "close", "examine")


class Searcher:
    """Searches for the target, takes, transforms and delivers it. Deterministic under `rng`."""

    def __init__(self, adapter: AlfworldAdapter, rng: random.Random) -> None:
        self._known = adapter.known
        self._rng = rng

    def act(self, admissible: Sequence[str]) -> str:
        """The next command, one of those admissible now."""
        known, goal = self._known, self._known.goal
        held = known.holding
        if goal.target is None or held is None:
            wishes = []
        elif known.is_target(held):
            wishes = self._with_target(held)
        elif held != NOTHING:
            wishes = [f"move {held} to {place}" for place in known.spot()]
            wishes += [f"put {held} in/on {place}" for place in known.spot()]
            wishes += self._visit(self._shuffled(known.receptacles))
        else:
            wishes = self._fetch()
        offered = set(admissible)
        for wish in (*wishes, *self._explore()):
            if wish in offered:
                return wish
        return wander(self._rng, admissible)

    def _with_target(self, held: str) -> list[str]:
        known, goal = self._known, self._known.goal
        if goal.state == "lit":
            lamps = known.lamps()
            return [f"use {lamp}" for lamp in lamps] + self._visit([known.location[lamp] for lamp in lamps])
        if not known.is_finished(held):
            tools = [place for place in known.receptacles if type_of(place) == goal.tool]
            verb = {"clean": "clean", "hot": "heat", "cool": "cool"}[goal.state]
            return [f"{verb} {held} with {tool}" for tool in tools] + self._visit(tools)
        ends = [place for place in known.receptacles if type_of(place) == goal.destination]
        ends.sort(key=known.in_place, reverse=True)
        here = known.spot()
        if known.best() == 0:
            ends.sort(key=lambda place: place not in here)
        wishes = []
        for end in ends[:1] if known.best() else ends:
            wishes += [f"move {held} to {end}", f"put {held} in/on {end}"]
        return wishes + self._visit(ends)

    def _fetch(self) -> list[str]:
        known = self._known
        best = known.best()
        found = [
            (name, place)
            for name, place in sorted(known.location.items())
            if known.is_target(name) and not (best and known.in_place(place) == best)
        ]
        wishes = [f"take {name} from {place}" for name, place in found]
        return wishes + self._visit([place for _, place in found])

    def _explore(self) -> list[str]:
        known = self._known
        fresh = [place for place in known.receptacles if place not in known.inspected]
        opened_here = [f"open {place}" for place in sorted(known.spot()) if place not in known.inspected]
        weighted = sorted(fresh, key=lambda place: self._rng.random() ** (1 / _PROMISE.get(type_of(place), 1)))
        return opened_here + self._visit(reversed(weighted))

    def _visit(self, places: Iterable[str]) -> list[str]:
        """Go to each place and open it, in order of preference."""
        known, wishes = self._known, []
        for place in places:
            if known.doors.get(place) == "closed":
                wishes.append(f"open {place}")
            wishes.append(f"go to {place}")
        return wishes

    def _shuffled(self, places: Sequence[str]) -> list[str]:
        return self._rng.sample(places, len(places))


class Demonstrator:
    """Noisy demonstrations: at each step the searcher with probability `share`, else `wander`."""

    def __init__(self, adapter: AlfworldAdapter, rng: random.Random, share: float) -> None:
        self._searcher = Searcher(adapter, rng)
        self._rng = rng
        self._share = share

    def act(self, admissible: Sequence[str]) -> str:
        if self._rng.random() < self._share:
            return self._searcher.act(admissible)
        return wander(self._rng, admissible)


def wander(rng: random.Random, admissible: Sequence[str]) -> str:
    """Noise that learns to walk, not to grab: 65 % go somewhere, 31 % look, open, close or examine, 4 % anything else.

    A kind of which nothing is admissible gives way to any command. Raises ValueError if there is none at all.
    """
    if not admissible:
        raise ValueError("no admissible command; the episode is over or the environment gave none")
    kinds: dict[str, list[str]] = {"go": [], "cheap": [], "other": []}
    for command in admissible:
        verb = command.partition(" ")[0]
        if verb != "help":
            kinds["go" if verb == "go" else "cheap" if verb in _CHEAP else "other"].append(command)
    (kind,) = rng.choices(("go", "cheap", "other"), (0.65, 0.31, 0.04))
    return rng.choice(kinds[kind] or admissible)

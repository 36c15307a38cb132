"""What is known of an ALFWorld episode at one moment, by its texts alone, and the questions one may put to it."""

from __future__ import annotations

from collections.abc import Hashable

from trca_jax.envs.alfworld.binder import Goal
from trca_jax.envs.alfworld.feedback import names_in, type_of

NOTHING = "nothing"
CONTEXTS = ("progress", "holding", "place", "known_target_places", "target_state", "stage")


class Knowledge:
    """All that is known now; `facts.AlfworldAdapter` keeps it.

    receptacles: those of the room. doors: 'open', 'closed' or 'none' where known. inspected: receptacles whose contents
    were seen. location: last known receptacle of every object seen and not held. holding: instance in hand, NOTHING,
    or None if unknown. place: the receptacle last arrived at, 'start', or None. states: known states of an object.
    examined: objects of which no state is unknown. together: receptacles known to share a spot, one set a spot; at a
    shared spot all can be used, but `go to` them is refused. targets: instances of the target type ever seen.
    """

    def __init__(self, goal: Goal, first_observation: str) -> None:
        self.goal = goal
        room = first_observation.partition("Your task is to:")[0]
        self.receptacles: tuple[str, ...] = tuple(dict.fromkeys(names_in(room)))
        self.doors: dict[str, str] = {}
        self.inspected: set[str] = set()
        self.location: dict[str, str] = {}
        self.holding: str | None = NOTHING
        self.place: str | None = "start"
        self.states: dict[str, set[str]] = {}
        self.examined: set[str] = set()
        self.together: dict[str, set[str]] = {}
        self.targets: set[str] = set()

    def forget(self) -> None:
        """Something unreadable happened: hand, place, doors, objects' places and states may all have changed."""
        self.holding = self.place = None
        for known in (self.doors, self.location, self.states, self.examined):
            known.clear()

    def spot(self) -> set[str]:
        """Receptacles known to be within reach; there may be more."""
        return self.together.get(self.place, set())

    def is_target(self, name: str | None) -> bool:
        """Whether an object is of the type that the task is about."""
        return name is not None and type_of(name) == self.goal.target

    def is_finished(self, name: str) -> bool | None:
        """Whether an object is in the state that its destination asks for; None if that is not known."""
        state = self.goal.state
        if state is None or state in self.states.get(name, ()):
            return True
        return False if name in self.examined else None

    def lamps(self) -> list[str]:
        """Known instances of the lamp that the task names."""
        return [name for name in self.location if type_of(name) == self.goal.tool]

    def target_places(self) -> tuple[str, ...]:
        """Where targets that are not in hand are known to be, sorted; one entry a target."""
        return tuple(sorted(self.location[name] for name in self.targets if name in self.location))

    def in_place(self, receptacle: str) -> int:
        """How many finished targets are known to be in a destination receptacle."""
        if type_of(receptacle) != self.goal.destination:
            return 0
        return sum(self.location.get(name) == receptacle and self.is_finished(name) is True for name in self.targets)

    def best(self) -> int:
        """The most finished targets known to be together in one destination receptacle."""
        return max(map(self.in_place, self.target_places()), default=0)

    def context(self) -> dict[str, Hashable]:
        """What is known, by the names of CONTEXTS: the type in hand, the receptacle last arrived at, and so on.

        progress: whether the lamp is on, and how many finished targets are in place. stage: 'find' a target, 'fetch' a
        known one, 'transform' the one in hand (or light it), or 'deliver' it.
        """
        held, goal = self.holding, self.goal
        places, best, states = (), 0, ()
        if self.targets:
            places, best = self.target_places(), self.best()
            states = tuple(sorted(set().union(*(self.states.get(name, ()) for name in self.targets))))
        lit = goal.state == "lit" and any("lit" in self.states.get(lamp, ()) for lamp in self.lamps())
        if self.is_target(held):
            stage = "deliver" if goal.destination and self.is_finished(held) else "transform"
        else:
            stage = "fetch" if len(places) > best else "find"
        fields = (lit, best), held and type_of(held), self.place, places, states, stage
        return dict(zip(CONTEXTS, fields, strict=True))

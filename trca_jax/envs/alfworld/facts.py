"""Follows one ALFWorld episode by its observable text: what is known now, and what each transition brought."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trca_jax.envs.alfworld.binder import ORDINALS, Goal
from trca_jax.envs.alfworld.feedback import Event, names_in, read_feedback, type_of
from trca_jax.rubrics.schema import Fact

NOTHING = "nothing"

FACTS = (
    Fact("parsed", "flag", "The agent's output held an action."),
    Fact("accepted", "flag", "The environment did something; false if it answered that nothing happens."),
    Fact("changed", "flag", "The agent's place or hand, a door, or an object's place or state is not as before."),
    Fact("informed", "flag", "The feedback told something that was not known before."),
    Fact("repeated", "flag", "The same action was tried before in the same decision context."),
    Fact("regressed", "flag", "A target went further from its goal: put down elsewhere, taken out again, or spoilt."),
    Fact("holding", "symbol", "Type of the object in hand afterwards, or 'nothing'."),
    Fact("onto", "symbol", "Type of the receptacle that an object was put in or on, or 'nothing'."),
    Fact("near", "symbols", "Types of receptacles known to be within reach; there may be more.", width=8),
    Fact("opened", "symbol", "Type of a receptacle that was opened for the first time, or 'nothing'."),
    Fact("listed", "symbol", "Type of a receptacle whose contents were listed for the first time, or 'nothing'."),
    Fact("reached", "symbols", "Types of receptacles that came within reach for the first time.", width=8),
    Fact("revealed", "symbols", "Types of objects seen of which this instance was not seen before.", width=12),
    Fact("brought", "symbols", "Types of places that the target in hand came within reach of the first time.", width=8),
    Fact("gained", "symbol", "State that an object got which it never had before, or 'nothing'."),
    Fact("treated", "symbol", "Type of the object that got it, or 'nothing'."),
    Fact("sighted", "symbols", "Counts of different targets seen that were reached now.", width=2),
    Fact("taken", "symbols", "Counts of different targets ever taken that were reached now.", width=2),
    Fact("carried", "symbols", "Counts of different finished targets brought to a destination, reached now.", width=2),
    Fact("placed", "symbols", "Counts of finished targets in one destination that were reached now.", width=2),
)
CONTEXT = ("progress", "holding", "place", "known_target_places", "target_state", "stage")

_UNKNOWN = dict.fromkeys(fact.name for fact in FACTS)
_QUIET = {fact.name: {"flag": False, "symbol": NOTHING, "symbols": ()}[fact.kind] for fact in FACTS}
_OPPOSITE = {"hot": "cool", "cool": "hot"}
_GIVES = {"clean": "clean", "heat": "hot", "cool": "cool", "use": "lit"}


class AlfworldAdapter:
    """Knowledge of one episode, from its sentence and feedback texts alone (protocol `Adapter`).

    receptacles: those of the room. doors: 'open', 'closed' or 'none' where known. inspected: receptacles whose contents
    were seen. location: last known receptacle of every object seen and not held. holding: instance in hand, NOTHING,
    or None if unknown. place: the receptacle last arrived at, 'start', or None. states: known states of an object.
    Several receptacles can share one spot, so what is within reach is known only in part: `spot()`.
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
        self._plain: set[str] = set()  # objects whose examination told all states they have
        self._together: dict[str, set[str]] = {}  # receptacles known to share a spot, one set object a spot
        self._near: tuple = (...,)
        self._seen: set[str] = set()
        self._reached: set[str] = set()
        self._opened: set[str] = set()
        self._gained: set[tuple[str, str]] = set()
        self._brought: set[tuple[str, str]] = set()
        self._tried: set[tuple] = set()
        self._sighted: set[str] = set()
        self._taken: set[str] = set()
        self._carried: set[str] = set()
        self._placed = 0
        self._context = self._make_context()

    def context(self) -> tuple:
        return self._context

    def transition(self, action: str | None, observation: str, admissible: Sequence[str]) -> Mapping[str, Any]:
        event = read_feedback(observation)
        if event is None:
            self.holding = self.place = None  # anything may have happened
            self._near = (...,)
            facts = dict(_UNKNOWN)
        else:
            facts = dict(_QUIET)
            facts["accepted"] = event.verb != "refused"
            if handler := _HANDLERS.get(event.verb):
                handler(self, event, facts)
            self._carry(facts)
            facts["near"] = self._near
            if self.holding is None:
                facts["holding"] = facts["brought"] = facts["carried"] = None
            elif self.holding != NOTHING:
                facts["holding"] = type_of(self.holding)
            if self.goal.target is None:
                facts.update(_NO_GOAL)
        facts["parsed"] = action is not None
        facts["repeated"] = False
        if action is not None:
            attempt = (self._context, action.strip())
            facts["repeated"] = attempt in self._tried
            self._tried.add(attempt)
        self._context = self._make_context()
        return facts

    def spot(self) -> set[str]:
        """Receptacles known to be within reach; there may be more."""
        return self._together.get(self.place, set())

    def is_target(self, name: str | None) -> bool:
        """Whether an object is of the type that the task is about."""
        return name is not None and self.goal.target == type_of(name)

    def is_finished(self, name: str) -> bool | None:
        """Whether an object is in the state that its destination asks for; None if that is not known."""
        state = self.goal.state
        if state is None or state in self.states.get(name, ()):
            return True
        return False if name in self._plain else None

    def in_place(self, receptacle: str) -> int:
        """How many finished targets are known to be in a destination receptacle."""
        if type_of(receptacle) != self.goal.destination:
            return 0
        return sum(self.location.get(name) == receptacle and self.is_finished(name) is True for name in self._sighted)

    def best(self) -> int:
        """The most finished targets known to be together in one destination receptacle."""
        return max(map(self.in_place, {self.location.get(name, "") for name in self._sighted}), default=0)

    def lamps(self) -> list[str]:
        """Known instances of the lamp that the task names."""
        return [name for name in self.location if type_of(name) == self.goal.tool]

    def is_lit(self) -> bool:
        return any("lit" in self.states.get(lamp, ()) for lamp in self.lamps())

    def _places(self) -> tuple[str, ...]:
        return tuple(sorted(self.location[name] for name in self._sighted if name in self.location))

    def _make_context(self) -> tuple:
        held, goal = self.holding, self.goal
        states = set().union(*(self.states.get(name, ()) for name in self._sighted))
        finished = self.is_lit() if goal.state == "lit" else goal.state in states
        places, best = self._places(), self.best()
        if self.is_target(held):
            stage = "deliver" if goal.destination and self.is_finished(held) else "transform"
        else:
            stage = "fetch" if len(places) > best else "find"
        return (
            (min(len(self._taken), 2), finished, best),
            held if held in (None, NOTHING) else type_of(held),
            self.place,
            places,
            tuple(sorted(states)),
            stage,
        )

    def _go(self, event: Event, facts: dict) -> None:
        facts["changed"] = True
        self.place = event.at
        self._view(event, facts)
        self._reach(facts, event.at)

    def _view(self, event: Event, facts: dict) -> None:
        """What a look at one receptacle tells."""
        at = event.at
        if self.doors.get(at) != event.door:
            facts["informed"] = True
            self.doors[at] = event.door
        if event.items is None:
            return
        if at not in self.inspected:
            self.inspected.add(at)
            facts["listed"] = type_of(at)
            facts["informed"] = True
        self.location.update(dict.fromkeys(event.items, at))
        self.location.pop(self.holding, None)  # a few games list an object in two receptacles, even while it is in hand
        self._see(event.items, facts)

    def _reach(self, facts: dict, *found: str) -> None:
        """Receptacles `found` turn out to be at the agent's spot, with all that are known to be beside them."""
        if self.place in (None, "start"):
            self.place = found[0]
        spot = self.spot()
        if not spot.issuperset(found):
            spot = spot.union(found, *(self._together.get(name, ()) for name in found))
            self._together.update(dict.fromkeys(spot, spot))
        kinds = set(map(type_of, spot))
        self._near = (*sorted(kinds), ...)
        if new := spot - self._reached:
            self._reached |= new
            facts["informed"] = True
            facts["reached"] = tuple(sorted(set(map(type_of, new))))

    def _carry(self, facts: dict) -> None:
        """Whether the target in hand has come within reach of something that matters."""
        held = self.holding
        if not self.is_target(held):
            return
        spot = self.spot()
        near = set(self._near[:-1]) | {type_of(lamp) for lamp in self.lamps() if self.location[lamp] in spot}
        new = {kind for kind in near if (held, kind) not in self._brought}
        if new:
            self._brought.update((held, kind) for kind in new)
            facts["brought"] = tuple(sorted(new))
        if self.goal.destination in near and self.is_finished(held):
            facts["carried"] = _count_up(self._carried, [held])

    def _open(self, event: Event, facts: dict) -> None:
        facts["changed"] = True
        self._reach(facts, event.at)
        self._view(event, facts)
        if event.at not in self._opened:
            self._opened.add(event.at)
            facts["opened"] = type_of(event.at)

    def _close(self, event: Event, facts: dict) -> None:
        facts["changed"] = True
        self._reach(facts, event.at)
        self.doors[event.at] = "closed"

    def _take(self, event: Event, facts: dict) -> None:
        facts["changed"] = True
        thing, best = event.thing, self.best()
        self._see((thing,), facts)
        self._reach(facts, event.at)
        self.location.pop(thing, None)
        self.holding = thing
        if self.is_target(thing):
            facts["taken"] = _count_up(self._taken, [thing])
            facts["regressed"] = self.best() < best

    def _move(self, event: Event, facts: dict) -> None:
        facts["changed"] = True
        thing, at, best = event.thing, event.at, self.best()
        self._see((thing,), facts)
        self._reach(facts, at)
        facts["onto"] = type_of(at)
        self.location[thing] = at
        self.holding = NOTHING
        if not self.is_target(thing):
            return
        here = type_of(at) == self.goal.destination
        if here and self.is_finished(thing):
            facts["carried"] = _count_up(self._carried, [thing])
        now = self.best()
        facts["placed"] = ORDINALS[self._placed : now]
        self._placed = max(self._placed, now)
        facts["regressed"] = None if here and self.is_finished(thing) is None else now <= best

    def _see(self, names: Sequence[str], facts: dict) -> None:
        """Objects are named, perhaps for the first time."""
        new = [name for name in names if name not in self._seen]
        if new:
            self._seen.update(new)
            facts["informed"] = True
            facts["revealed"] = tuple(dict.fromkeys(map(type_of, new)))
            facts["sighted"] = _count_up(self._sighted, filter(self.is_target, new))

    def _treat(self, event: Event, facts: dict) -> None:
        thing, gives = event.thing, _GIVES[event.verb]
        if event.at:
            self._reach(facts, event.at)
            self.holding = thing
        states = self.states.setdefault(thing, set())
        spoilt = _OPPOSITE.get(gives)
        if gives not in states:
            facts["changed"] = True
        if spoilt in states:
            states.discard(spoilt)
            facts["regressed"] = self.is_target(thing) and spoilt == self.goal.state
        states.add(gives)
        if (thing, gives) not in self._gained:
            self._gained.add((thing, gives))
            facts["gained"], facts["treated"] = gives, type_of(thing)

    def _slice(self, event: Event, facts: dict) -> None:
        states = self.states.setdefault(event.thing, set())
        facts["changed"] = "sliced" not in states
        states.add("sliced")

    def _examine(self, event: Event, facts: dict) -> None:
        if event.at:
            self._reach(facts, event.at)
            self._view(event, facts)
            return
        if self.holding != event.thing:
            facts["informed"] = True
            self.holding = event.thing  # only the object in hand can be examined
        if event.looks is not None and event.thing not in self._plain:
            facts["informed"] = True
            self._plain.add(event.thing)
            self.states.setdefault(event.thing, set()).update(event.looks)

    def _inventory(self, event: Event, facts: dict) -> None:
        held = event.thing or NOTHING
        if held != self.holding:
            facts["informed"] = True
            self.holding = held
            self.location.pop(held, None)

    def _look(self, event: Event, facts: dict) -> None:
        if event.facing:
            self._reach(facts, *event.facing)


_NO_GOAL = dict.fromkeys(("regressed", "brought", "sighted", "taken", "carried", "placed"))
_HANDLERS: dict[str, Callable[[AlfworldAdapter, Event, dict], None]] = {
    "go": AlfworldAdapter._go,
    "open": AlfworldAdapter._open,
    "close": AlfworldAdapter._close,
    "take": AlfworldAdapter._take,
    "move": AlfworldAdapter._move,
    "clean": AlfworldAdapter._treat,
    "heat": AlfworldAdapter._treat,
    "cool": AlfworldAdapter._treat,
    "use": AlfworldAdapter._treat,
    "slice": AlfworldAdapter._slice,
    "examine": AlfworldAdapter._examine,
    "inventory": AlfworldAdapter._inventory,
    "look": AlfworldAdapter._look,
}


def _count_up(known: set[str], found) -> tuple[str, ...]:
    """Adds what was found, and names the counts that were reached by it."""
    before = len(known)
    known.update(found)
    return ORDINALS[before : len(known)]

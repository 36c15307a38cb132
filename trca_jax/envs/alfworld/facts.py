"""Facts of ALFWorld transitions: what each feedback text says has happened, and what of it for the first time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from trca_jax.envs.alfworld.binder import ORDINALS, Goal
from trca_jax.envs.alfworld.feedback import Event, read_feedback, type_of
from trca_jax.envs.alfworld.knowledge import NOTHING, Knowledge
from trca_jax.rubrics.schema import Fact

FACTS = (
    Fact("parsed", "flag", "The agent's output held an action."),
    Fact("accepted", "flag", "The environment did something; false if it answered that nothing happens."),
    Fact("changed", "flag", "The agent's place or hand, a door, or an object's place or state is not as before."),
    Fact("informed", "flag", "The feedback told something that was not known before."),
    Fact(
        "repeated",
        "flag",
        "The same action was tried before when hand, place and all known of the targets were as now.",
    ),
    Fact("searching", "flag", "Before the action, a target or a lamp that the task needs had never been seen."),
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

_UNKNOWN = dict.fromkeys(fact.name for fact in FACTS)
_QUIET = {fact.name: {"flag": False, "symbol": NOTHING, "symbols": ()}[fact.kind] for fact in FACTS}
_OPPOSITE = {"hot": "cool", "cool": "hot"}
_GIVES = {"clean": "clean", "heat": "hot", "cool": "cool", "use": "lit"}


class AlfworldAdapter:
    """Follows one episode (protocol `Adapter`). known: what its texts have told so far, for scripted play."""

    def __init__(self, goal: Goal, first_observation: str) -> None:
        self.known = Knowledge(goal, first_observation)
        self._near: tuple = (...,)  # types of receptacles within reach
        self._seen: set[str] = set()
        self._reached: set[str] = set()
        self._opened: set[str] = set()
        self._gained: set[tuple[str, str]] = set()
        self._brought: set[tuple[str, str]] = set()
        self._tried: set[tuple] = set()
        self._taken: set[str] = set()
        self._carried: set[str] = set()
        self._placed = 0
        self._context = self.known.context()

    def context(self) -> Mapping[str, Hashable]:
        return self._context

    def transition(self, action: str | None, observation: str, admissible: Sequence[str]) -> Mapping[str, Any]:
        event, known = read_feedback(observation), self.known
        searching = self._searching()
        if event is None:
            known.forget()
            self._near = (...,)
            facts = dict(_UNKNOWN)
        else:
            facts = dict(_QUIET)
            facts["accepted"] = event.verb != "refused"
            if handler := _HANDLERS.get(event.verb):
                handler(self, event, facts)
            self._carry(facts)
            facts["near"] = self._near
            if known.holding is None:
                facts["holding"] = facts["brought"] = facts["carried"] = None
            else:
                facts["holding"] = type_of(known.holding)
            if known.goal.target is None:
                facts.update(_NO_GOAL)
        facts["parsed"], facts["searching"] = action is not None, searching
        facts["repeated"] = False
        if action is not None:
            attempt = (*self._context.values(), action.strip())
            facts["repeated"] = attempt in self._tried
            self._tried.add(attempt)
        self._context = known.context()
        return facts

    def _searching(self) -> bool | None:
        goal, known = self.known.goal, self.known
        if goal.target is None:
            return None
        dark = goal.state == "lit" and not any(type_of(name) == goal.tool for name in self._seen)
        return dark or len(known.targets) < goal.copies

    def _go(self, event: Event, facts: dict) -> None:
        facts["changed"] = True
        self.known.place = event.at
        self._view(event, facts)
        self._reach(facts, event.at)

    def _view(self, event: Event, facts: dict) -> None:
        """What a look at one receptacle tells."""
        known = self.known
        at = event.at
        if known.doors.get(at) != event.door:
            facts["informed"] = True
            known.doors[at] = event.door
        if event.items is None:
            return
        if at not in known.inspected:
            known.inspected.add(at)
            facts["listed"] = type_of(at)
            facts["informed"] = True
        known.location.update(dict.fromkeys(event.items, at))
        known.location.pop(known.holding, None)  # some games list an object in two receptacles, even while it is held
        self._see(event.items, facts)

    def _reach(self, facts: dict, *found: str) -> None:
        """Receptacles `found` turn out to be at the agent's spot, with all that are known to be beside them."""
        known = self.known
        if known.place in (None, "start"):
            known.place = found[0]
        spot = known.spot()
        if not spot.issuperset(found):
            spot = spot.union(found, *(known.together.get(name, ()) for name in found))
            known.together.update(dict.fromkeys(spot, spot))
        self._near = (*sorted(set(map(type_of, spot))), ...)
        if new := spot - self._reached:
            self._reached |= new
            facts["informed"] = True
            facts["reached"] = tuple(sorted(set(map(type_of, new))))

    def _carry(self, facts: dict) -> None:
        """Whether the target in hand has come within reach of something that matters."""
        known, held = self.known, self.known.holding
        if not known.is_target(held):
            return
        spot = known.spot()
        near = set(self._near[:-1]) | {type_of(lamp) for lamp in known.lamps() if known.location[lamp] in spot}
        new = {kind for kind in near if (held, kind) not in self._brought}
        if new:
            self._brought.update((held, kind) for kind in new)
            facts["brought"] = tuple(sorted(new))
        if known.goal.destination in near and known.is_finished(held):
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
        self.known.doors[event.at] = "closed"

    def _take(self, event: Event, facts: dict) -> None:
        known = self.known
        facts["changed"] = True
        thing, best = event.thing, known.best()
        self._see((thing,), facts)
        self._reach(facts, event.at)
        known.location.pop(thing, None)
        known.holding = thing
        if known.is_target(thing):
            facts["taken"] = _count_up(self._taken, [thing])
            facts["regressed"] = known.best() < best

    def _move(self, event: Event, facts: dict) -> None:
        known = self.known
        facts["changed"] = True
        thing, at, best = event.thing, event.at, known.best()
        self._see((thing,), facts)
        self._reach(facts, at)
        facts["onto"] = type_of(at)
        known.location[thing] = at
        known.holding = NOTHING
        if not known.is_target(thing):
            return
        here = type_of(at) == known.goal.destination
        if here and known.is_finished(thing):
            facts["carried"] = _count_up(self._carried, [thing])
        now = known.best()
        facts["placed"] = ORDINALS[self._placed : now]
        self._placed = max(self._placed, now)
        facts["regressed"] = None if here and known.is_finished(thing) is None else now <= best

    def _see(self, names: Sequence[str], facts: dict) -> None:
        """Objects are named, perhaps for the first time."""
        new = [name for name in names if name not in self._seen]
        if new:
            self._seen.update(new)
            facts["informed"] = True
            facts["revealed"] = tuple(dict.fromkeys(map(type_of, new)))
            facts["sighted"] = _count_up(self.known.targets, filter(self.known.is_target, new))

    def _treat(self, event: Event, facts: dict) -> None:
        known = self.known
        thing, gives = event.thing, _GIVES[event.verb]
        if event.at:
            self._reach(facts, event.at)
            known.holding = thing
        states = known.states.setdefault(thing, set())
        spoilt = _OPPOSITE.get(gives)
        if gives not in states:
            facts["changed"] = True
        if spoilt in states:
            states.discard(spoilt)
            facts["regressed"] = known.is_target(thing) and spoilt == known.goal.state
        states.add(gives)
        if (thing, gives) not in self._gained:
            self._gained.add((thing, gives))
            facts["gained"], facts["treated"] = gives, type_of(thing)

    def _slice(self, event: Event, facts: dict) -> None:
        states = self.known.states.setdefault(event.thing, set())
        facts["changed"] = "sliced" not in states
        states.add("sliced")

    def _examine(self, event: Event, facts: dict) -> None:
        known = self.known
        if event.at:
            self._reach(facts, event.at)
            self._view(event, facts)
            return
        if known.holding != event.thing:
            facts["informed"] = True
            known.holding = event.thing  # only the object in hand can be examined
        if event.looks is not None and event.thing not in known.examined:
            facts["informed"] = True
            known.examined.add(event.thing)
            known.states.setdefault(event.thing, set()).update(event.looks)

    def _inventory(self, event: Event, facts: dict) -> None:
        known = self.known
        held = event.thing or NOTHING
        if held != known.holding:
            facts["informed"] = True
            known.holding = held
            known.location.pop(held, None)

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

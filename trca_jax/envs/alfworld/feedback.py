"""Read one ALFWorld feedback text into an event. Knows the wording of both data releases, and nothing of the task."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

ACTIONS = (
    "go to {receptacle}", "open {receptacle}", "close {receptacle}", "take {object} from {receptacle}",
    "move {object} to {receptacle}", "clean {object} with {receptacle}", "heat {object} with {receptacle}",
    "cool {object} with {receptacle}", "use {lamp}", "slice {object} with {object}", "examine {thing}", "inventory",
    "look", "help",
)  # fmt: skip

_NAME = r"[a-z]+ \d+"
_LIST = rf"(?:nothing|a {_NAME}(?:, a {_NAME})*(?:, and a {_NAME})?)"
_VIEW = (
    rf"(?:On the (?P<surface>{_NAME}), you see (?P<on>{_LIST})"
    rf"|The (?P<open>{_NAME}) is open\. In it, you see (?P<inside>{_LIST})"
    rf"|The (?P<closed>{_NAME}) is closed)\."
)
_PATTERNS = tuple(
    (verb, re.compile(pattern))
    for verb, pattern in (
        ("go", rf"You arrive at (?:loc \d+|(?P<at>{_NAME}))\. {_VIEW}"),
        ("refused", r"Nothing happens\."),
        ("open", rf"You open the (?P<at>{_NAME})\. {_VIEW}"),
        ("take", rf"You pick up the (?P<thing>{_NAME}) from the (?P<at>{_NAME})\."),
        ("move", rf"You (?:move|put) the (?P<thing>{_NAME}) (?:to|in/on|in|on) the (?P<at>{_NAME})\."),
        ("clean", rf"You clean the (?P<thing>{_NAME}) using the (?P<at>{_NAME})\."),
        ("heat", rf"You heat the (?P<thing>{_NAME}) using the (?P<at>{_NAME})\."),
        ("cool", rf"You cool the (?P<thing>{_NAME}) using the (?P<at>{_NAME})\."),
        ("use", rf"You turn on the (?P<thing>{_NAME})\."),
        ("close", rf"You close the (?P<at>{_NAME})\."),
        ("examine", _VIEW),
        ("examine", rf"There's nothing special about (?P<thing>{_NAME})\."),
        ("examine", rf"This is a (?P<looks>[a-z ]+?) (?P<thing>{_NAME})\.(?: In it, you see {_LIST}\.)?"),
        ("inventory", rf"You are carrying: a (?P<thing>{_NAME})\."),
        ("inventory", r"You are not carrying anything\."),
        ("look", rf"You are facing the (?P<facing>{_NAME}(?:, {_NAME})*(?:, and {_NAME})?)\. Next to it, .+\."),
        ("look", rf"You are in the middle of a room\. Looking quickly around you, you see {_LIST}\."),
        ("slice", rf"You sliced the (?P<thing>{_NAME}) with the {_NAME}\."),
        ("help", r"Available commands:\n(?s:.+)"),
    )
)
_NAMES = re.compile(_NAME)


class Event(NamedTuple):
    """What happened, by the environment's own word.

    verb: the kind of action that was answered; 'refused' if nothing happened. thing: the object named. at: the
    receptacle named. door: 'open', 'closed', or 'none' of a surface, of the receptacle in view. items: what it is seen
    to hold, None if that is not shown. looks: state words of an examined object, None if they tell nothing.
    facing: all receptacles at the agent's spot.
    """

    verb: str
    thing: str | None = None
    at: str | None = None
    door: str | None = None
    items: tuple[str, ...] | None = None
    looks: frozenset[str] | None = None
    facing: tuple[str, ...] = ()


def type_of(name: str) -> str:
    """'apple' of 'apple 2'."""
    return name.partition(" ")[0]


def names_in(text: str) -> tuple[str, ...]:
    """All names like 'apple 2' in a text, in order."""
    return tuple(_NAMES.findall(text))


@lru_cache(maxsize=1 << 14)  # rollouts of one group read the same texts
def read_feedback(text: str) -> Event | None:
    """The event that a feedback text reports; None for a text outside the grammar."""
    text = text.strip()
    for verb, pattern in _PATTERNS:
        if match := pattern.fullmatch(text):
            return _event(verb, match.groupdict(), text)
    return None


def _event(verb: str, part: dict[str, str | None], text: str) -> Event | None:
    at, thing, door, items = part.get("at"), part.get("thing"), None, None
    for kind, listing in (("surface", "on"), ("open", "inside"), ("closed", None)):
        if seen := part.get(kind):
            if at not in (None, seen):
                return None
            at, door = seen, "none" if kind == "surface" else kind
            items = names_in(part[listing]) if listing else None
    looks = None
    if verb == "examine" and thing:
        words = part.get("looks")
        looks = None if words == "normal" else frozenset((words or "").replace("cold", "cool").split()) - {"and"}
    return Event(verb, thing, at, door, items, looks, names_in(part.get("facing") or ""))

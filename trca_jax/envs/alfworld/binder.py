"""Read a task's templated sentence into what it asks for: a fixed rule, no model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trca_jax.rubrics.schema import BindingField

ORDINALS = ("first", "second")

FIELDS = (
    BindingField("target", "symbol", "Type of the object that the task is about, such as 'apple'."),
    BindingField("destination", "symbol", "Type of receptacle that the target must end in; none in look tasks."),
    BindingField("state", "symbol", "What must be brought about: 'clean', 'hot', 'cool', or 'lit' of the lamp."),
    BindingField("tool", "symbol", "What brings it about: 'sinkbasin', 'microwave', 'fridge' or the type of lamp."),
    BindingField("copies", "symbols", "'first', and 'second' if two objects are asked for.", width=2),
)

_KINDS = {
    "clean": ("pick_clean_then_place_in_recep", "sinkbasin"),
    "heat": ("pick_heat_then_place_in_recep", "microwave"),
    "hot": ("pick_heat_then_place_in_recep", "microwave"),
    "cool": ("pick_cool_then_place_in_recep", "fridge"),
}
_STATES = {"clean": "clean", "heat": "hot", "hot": "hot", "cool": "cool"}
_TEMPLATES = tuple(
    re.compile(rf"(?:Your task is to: )?{template}\.?")
    for template in (
        r"put (?:a|some) (?P<target>\w+) (?:in|on) (?P<destination>\w+)",
        r"put a (?P<how>clean|hot|cool) (?P<target>\w+) in (?P<destination>\w+)",
        r"(?P<how>clean|heat|cool) some (?P<target>\w+) and put it in (?P<destination>\w+)",
        r"put (?P<two>two) (?P<target>\w+) in (?P<destination>\w+)",
        r"find (?P<two>two) (?P<target>\w+) and put them in (?P<destination>\w+)",
        r"examine the (?P<target>\w+) with the (?P<lamp>\w+)",
        r"look at (?P<target>\w+) under the (?P<lamp>\w+)",
    )
)


@dataclass(frozen=True)
class Goal:
    """What a task asks for; None where it asks for nothing of the sort, or where the sentence is not understood.

    kind: the task type, as ALFWorld names it. copies: how many different objects. Other fields as in `FIELDS`.
    """

    kind: str | None = None
    target: str | None = None
    destination: str | None = None
    state: str | None = None
    tool: str | None = None
    copies: int = 1


def read_goal(instruction: str) -> Goal:
    """The goal that one of ALFWorld's twelve sentence templates states; an empty `Goal` for any other text."""
    for template in _TEMPLATES:
        if match := template.fullmatch(instruction.strip()):
            return _goal(match.groupdict())
    return Goal()


def _goal(words: Mapping[str, str | None]) -> Goal:
    target, destination, how = words["target"], words.get("destination"), words.get("how")
    if words.get("lamp"):
        return Goal("look_at_obj_in_light", target, None, "lit", words["lamp"])
    if how:
        kind, tool = _KINDS[how]
        return Goal(kind, target, destination, _STATES[how], tool)
    if words.get("two"):
        return Goal("pick_two_obj_and_place", target, destination, copies=2)
    return Goal("pick_and_place_simple", target, destination)


def binding(goal: Goal) -> dict[str, Any]:
    """The binding fields of a goal; nothing is known of a task that was not understood."""
    copies = None if goal.kind is None else ORDINALS[: goal.copies]
    return {
        "target": goal.target,
        "destination": goal.destination,
        "state": goal.state,
        "tool": goal.tool,
        "copies": copies,
    }

"""What can be known: of a task by its sentence, and of a transition by the texts that the agent saw."""

import re

from trca_jax.rubrics.schema import BindingField, Declaration, Fact

DECLARATION = Declaration(
    facts=(
        Fact("parsed", "flag", "the output holds an action"),
        Fact("accepted", "flag", "the world did what was asked"),
        Fact("drawer", "symbol", "a drawer that is opened is 'new', or open 'again'; 'none' where none is"),
        Fact("revealed", "symbol", "colour of a key that comes into view for the first time, or 'nothing'"),
        Fact("taken", "symbol", "colour of the key that is taken, or 'nothing'"),
        Fact("unlocked", "symbol", "colour of the chest that is unlocked, or 'nothing'"),
        Fact("opened", "symbol", "colour of the chest that is opened, or 'nothing'"),
    ),
    fields=(BindingField("goal", "symbol", "colour of the chest that the task asks for"),),
    contexts=("searched", "stage", "holding"),
    actions=("open drawer {number}", "take {colour} key", "unlock {colour} chest", "open {colour} chest"),
)
_DRAWER = re.compile(r"In drawer (\d) is (?:a (\w+) key|nothing)\.")
_DONE = re.compile(r"You (take|unlock|open) the (\w+) (?:key|chest)\.")


def read_goal(instruction: str) -> str | None:
    match = re.fullmatch(r"open the (\w+) chest", instruction)
    return match and match[1]


class Adapter:
    """Reads one episode; it never sees the engine."""

    def __init__(self, goal: str | None):
        self.goal, self.searched, self.keys, self.holding, self.free = goal, set(), set(), "nothing", set()

    def context(self):
        stage = "open" if self.goal in self.free else "fetch" if self.goal in self.keys else "find"
        return {"searched": len(self.searched), "stage": stage, "holding": self.holding}

    def transition(self, action, observation, admissible):
        drawer, done = _DRAWER.fullmatch(observation), _DONE.fullmatch(observation)
        facts = {"parsed": action is not None, "accepted": bool(drawer or done), "drawer": "none"}
        facts |= dict.fromkeys(("revealed", "taken", "unlocked", "opened"), "nothing")
        if drawer:
            number, colour = drawer.groups()
            facts["drawer"] = "again" if number in self.searched else "new"
            if colour and colour not in self.keys:
                facts["revealed"] = colour
            self.searched.add(number)
            self.keys |= {colour} - {None}
        elif done:
            verb, colour = done.groups()
            facts[{"take": "taken", "unlock": "unlocked", "open": "opened"}[verb]] = colour
            if verb == "take":
                self.holding = colour
            elif verb == "unlock":
                self.free.add(colour)
        return facts

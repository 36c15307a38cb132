"""All around the small world of boxes: its rubric, its reader, a prompt, a tokenizer and a policy."""

import dataclasses

import jax
from boxes import COLOURS, COMMANDS, Boxes
from tiny import TINY, random_params

from trca_jax.agents.parse import parse
from trca_jax.envs.base import Example
from trca_jax.policy.tokenizer import word_tokenizer
from trca_jax.rubrics.library import parse_library
from trca_jax.rubrics.schema import BindingField, Declaration, Fact

RUBRIC = """
benchmark = "boxes"
[[operator]]
name = "first_look"
category = "evidence"
when = "accepted and opened != 'nothing'"
doc = "A box is opened for the first time."
[[operator]]
name = "unparsed"
category = "invalidity"
when = "not parsed"
doc = "No action."
[[operator]]
name = "refused"
category = "invalidity"
when = "parsed and not accepted"
doc = "The world did not understand."
[[operator]]
name = "goal_opened"
category = "execution"
when = "opened == goal"
doc = "The box of the right colour is opened."
[context]
fields = ["opened"]
"""
DECLARATION = Declaration(
    (
        Fact("parsed", "flag", "an action was found"),
        Fact("accepted", "flag", "the world obeyed"),
        Fact("opened", "symbol", "colour seen for the first time, or 'nothing'"),
    ),
    (BindingField("goal", "symbol", "the colour asked for"),),
    ("opened",),
    ("open {number}", "wait", "help"),
)
LIBRARY = parse_library(RUBRIC, DECLARATION.facts, DECLARATION.fields, DECLARATION.contexts)


class Adapter:
    """Reads texts alone. It also remembers all that it was told, for the tests."""

    def __init__(self):
        self.seen, self.told = (), []

    def context(self):
        return {"opened": self.seen}

    def transition(self, action, observation, admissible):
        self.told.append((action, observation, admissible))
        colour = next((c for c in COLOURS if c in observation.split()), None)
        fresh = colour is not None and colour not in self.seen
        self.seen = tuple(sorted({*self.seen, colour})) if fresh else self.seen
        return {
            "parsed": action is not None,
            "accepted": "nothing happens" not in observation if action is not None else None,
            "opened": colour if fresh else "nothing",
        }


class World:
    name, library, offers, role = "boxes", LIBRARY, frozenset({"gold answers"}), "You open boxes."
    declaration = DECLARATION
    example = Example("open the blue box", (("you see box 1 box 2 .", "Box 2 may be blue.", "open 2"),))
    brief = staticmethod(str.lower)

    def __init__(self):
        self.adapters = []

    def make_env(self):
        return Boxes()

    def bind(self, task):
        return {"goal": task.instruction.split()[2]}

    def gold(self, task):
        return f"box is {task.payload['goal']}"

    def adapter(self, task, first_observation):
        self.adapters.append(Adapter())
        return self.adapters[-1]

    def demonstrator(self, adapter, rng, share):
        return Player(rng, share)


class Player:
    """Opens the boxes one after another with probability `share`, and waits otherwise."""

    def __init__(self, rng, share):
        self.rng, self.share, self.number = rng, share, 0

    def act(self, admissible):
        if self.rng.random() >= self.share:
            return "wait"
        self.number = self.number % 3 + 1
        return f"open {self.number}"


class ShortPrompt:
    """A stepwise prompt of few words that ends inside the tag; it shows the last step."""

    layout, opened, messages, stops, whole = "stepwise", True, False, ("</action>",), False

    def first(self, instruction, observation, admissible):
        return f"task {instruction} scene {observation} <action>"

    def next(self, instruction, history, observation, admissible):
        before, action = history[-1]
        return f"task {instruction} scene {before} {action} {observation} <action>"

    def read(self, answer):
        return parse(answer, opened=True)


TOKENIZER = word_tokenizer(
    [*COMMANDS, " ".join(COLOURS), "task the scene you see box it is . time goes by nothing happens"]
)
CONFIG = dataclasses.replace(TINY, vocab_size=len(TOKENIZER))


def policy():
    """Random weights that end an answer soon."""
    params = random_params(CONFIG)
    stop = TOKENIZER.eos_token_id
    return jax.tree.map(jax.numpy.asarray, params | {"embedding": params["embedding"].at[stop].multiply(3)})

"""A small text world: three closed boxes, one of the colour that the task asks for. It breaks where a task says so."""

import dataclasses

import jax
from tiny import TINY, random_params

from trca_jax.envs.base import Observation, Task
from trca_jax.policy.tokenizer import word_tokenizer
from trca_jax.rubrics.library import parse_library
from trca_jax.rubrics.schema import BindingField, Fact

COMMANDS = ("open 1", "open 2", "open 3", "wait", "help")
COLOURS = ("red", "blue", "green")
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
LIBRARY = parse_library(
    RUBRIC,
    [
        Fact("parsed", "flag", "an action was found"),
        Fact("accepted", "flag", "the world obeyed"),
        Fact("opened", "symbol", "colour seen for the first time, or 'nothing'"),
    ],
    [BindingField("goal", "symbol", "the colour asked for")],
    ["opened"],
)


def task(name, goal="red", colours=COLOURS, **trouble):
    """trouble: `breaks` at this step (0: the reset), `ends` at this step without success."""
    return Task(name, "boxes", f"open the {goal} box", "open", {"goal": goal, "colours": colours, **trouble})


class Boxes:
    def reset(self, task):
        self.payload, self.steps = task.payload, 0
        self._break()
        return Observation("you see box 1 box 2 box 3 .", COMMANDS)

    def step(self, action):
        self.steps += 1
        self._break()
        verb, _, number = action.partition(" ")
        done = self.steps == self.payload.get("ends")
        if verb == "open" and number in ("1", "2", "3"):
            colour = self.payload["colours"][int(number) - 1]
            won = colour == self.payload["goal"]
            return Observation(f"you open box {number} . it is {colour} .", COMMANDS, float(won), won or done, won)
        text = "time goes by ." if action == "wait" else "nothing happens ."
        return Observation(text, COMMANDS, -0.5 * (action == "wait"), done)

    def _break(self):
        if self.steps == self.payload.get("breaks"):
            raise RuntimeError(f"broken at {self.steps}")


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
    name, library, offers = "boxes", LIBRARY, frozenset({"gold answers"})

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


class ShortPrompt:
    """A stepwise prompt of few words that ends inside the tag; it shows the last step."""

    layout, opened, think, stops = "stepwise", True, False, ("</action>",)

    def first(self, instruction, observation, admissible):
        return f"task {instruction} scene {observation} <action>"

    def next(self, instruction, history, observation, admissible):
        before, action = history[-1]
        return f"task {instruction} scene {before} {action} {observation} <action>"


TOKENIZER = word_tokenizer(
    [*COMMANDS, " ".join(COLOURS), "task the scene you see box it is . time goes by nothing happens"]
)
CONFIG = dataclasses.replace(TINY, vocab_size=len(TOKENIZER))


def policy():
    """Random weights that end an answer soon."""
    params = random_params(CONFIG)
    stop = TOKENIZER.eos_token_id
    return jax.tree.map(jax.numpy.asarray, params | {"embedding": params["embedding"].at[stop].multiply(3)})

"""A small text world: three closed boxes, one of the colour that the task asks for. It breaks where a task says so.

Worker processes import it, so it knows nothing of JAX.
"""

import time

from trca_jax.envs.base import Observation, Task

COMMANDS = ("open 1", "open 2", "open 3", "wait", "help")
COLOURS = ("red", "blue", "green")


def task(name, goal="red", colours=COLOURS, **trouble):
    """trouble: `breaks` at this step (0: the reset), `ends` at this step without success, `naps` for 1.5
    seconds at this step."""
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
        if self.steps == self.payload.get("naps"):
            time.sleep(1.5)
        if self.steps == self.payload.get("breaks"):
            raise RuntimeError(f"broken at {self.steps}")

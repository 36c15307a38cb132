"""Episodes of the world of boxes, written by hand, and files of them as the report reads them."""

import jax
import numpy as np
from boxes import COMMANDS, task
from fake_world import World

from trca_jax import credit
from trca_jax.evaluation.timeline import Played
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.judge import credit_batch
from trca_jax.rubrics.language import Judge

ROOM = "you see box 1 box 2 box 3 ."
TIME, NOTHING = "time goes by .", "nothing happens ."
RED, BLUE = "you open box 1 . it is red .", "you open box 2 . it is blue ."
JUDGE = Judge(World().library)


def episode(*moves, goal="red", group=0, won=False, **more):
    """moves: (action, answer of the environment, reward, what was said)."""
    blank, steps, before = np.zeros(0, np.int32), [], ROOM
    for action, after, reward, said in moves:
        steps.append(Step(blank, blank, blank, None, action, (0, 0), before, COMMANDS, after, reward, said))
        before = after
    return Episode(task(f"{group}", goal), group, "append", ROOM, steps, won=won, **more)


def open_red(**more):
    return episode(("open 1", RED, 1.0, "<think>Red?</think><action>open 1</action>"), won=True, **more)


def wait(times=1, **more):
    return episode(*[("wait", TIME, -0.5, "")] * times, **more)


def played(episodes, key="rollouts-0", max_steps=4, method="trca"):
    """A file of judged and credited episodes. method: None leaves the credit out."""
    batch = credit_batch(episodes, World(), JUDGE, max_steps=max_steps)
    found = method and jax.device_get(credit.make(method)(batch))
    return Played(key, f"file {key}", episodes, batch, found, ("opened",), True)

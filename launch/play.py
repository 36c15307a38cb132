"""A person plays an episode and sees after each action which rubric operators fired and what was credited.

python launch/play.py --config=configs/alfworld.py [--split=train] [--task=ID or number]     help says what to type
python launch/play.py --config=configs/webshop.py --config.env.options.queries=free

Without --task, --config.seed draws one. Commands may come from a pipe, one a line.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import suppress
from random import Random

import numpy as np
from absl import flags

from launch import play_view as view
from launch.command import SPLIT, console, read_config, run
from launch.ledger import Bookkeeper, Ledger
from trca_jax.agents.parse import CLOSE, parse
from trca_jax.envs.base import Task, TaskSet
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rollout.world import World

_TASK = flags.DEFINE_string("task", None, "Id of a task of the split, or its number, from 0; else one is drawn.")

_BLANK = re.compile(r"(?<=[\[>])<([^<>/]+)>(?=[\]<])")  # <your query> in search[<your query>]


class Player:
    """Reads what a person types: on a terminal with a prompt, else a line at a time."""

    def __init__(self) -> None:
        self._terminal = sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        with suppress(ImportError):  # for editing and history on a terminal
            import readline  # noqa: F401

    def line(self, prompt: str) -> str:
        """Raises EOFError at the end of the input."""
        if self._terminal:
            print()
            return input(prompt).strip()
        if not (line := sys.stdin.readline()):
            raise EOFError
        return line.strip()

    def answer(self, prompt: str, offered: tuple[str, ...], ledger: Ledger) -> str:
        """What an agent would have answered. Raises EOFError when the person has enough."""
        while True:
            line = self.line(prompt)
            if line.lower() == "quit":
                raise EOFError
            if line.lower() == "help":
                console.print(view.manual(ledger))
            elif line == "?":
                console.print(view.commands(offered, console.width))
            elif line.isdecimal():
                if 1 <= (number := _number(line)) <= len(offered):
                    return _BLANK.sub(lambda blank: self.line(f"{blank[1]}: "), offered[number - 1])
                console.print(f"There is no command {line}; ? lists them.", markup=False)
            elif line:
                return line


def main() -> int:
    config = read_config()
    config.env.workers = 0  # one episode needs no process of its own
    with World(config.env, slots=1) as world:
        tasks = world.benchmark.tasks(SPLIT.value or "train")
        task = choose(tasks, _TASK.value, config.seed)
        world.benchmark.prepare([task], lambda done, of: None)
        keep = Bookkeeper(world, config)
        episode, code = Episode(task, 0, "append"), 0
        try:
            play(world, episode, keep, f"split {tasks.split} of {tasks.source}")
        except EOFError:
            console.print()
        except KeyboardInterrupt:
            console.print()
            code = 130
        if episode.failure:
            raise ValueError(f"the episode broke off, and is credited with nothing: {view.plain(episode.failure)}")
        console.print(view.closing(episode, keep(episode)))
    return code


def choose(tasks: TaskSet, wanted: str | None, seed: int) -> Task:
    """The task of that id or number; without one, drawn by the seed. Raises ValueError if there is none."""
    if wanted is None:
        return Random(seed).choice(tasks.tasks)
    found = [task for task in tasks if task.id == wanted]
    if not found and wanted.isdecimal() and _number(wanted) < len(tasks):
        found = [tasks.tasks[_number(wanted)]]
    if not found:
        raise ValueError(
            f"--task={wanted} is not in split {tasks.split}; expected a number from 0 to {len(tasks) - 1}, or an id "
            f"such as {tasks.tasks[0].id}"
        )
    return found[0]


def play(world: World, episode: Episode, keep: Bookkeeper, place: str) -> None:
    """Plays until the episode ends. Raises EOFError and KeyboardInterrupt when the person ends it."""
    player, blank, steps = Player(), np.zeros(0, np.int32), world.env.max_steps
    world.pool.reset([0], [episode.task])
    (seen,) = world.pool.receive([0])
    going, ledger = episode.observe(seen), keep(episode)
    if going:
        console.print(view.opening(episode.task, place, seen.text, ledger))
        console.print(view.commands(_listed(seen.admissible), console.width))
    while going and not episode.truncated:
        t = len(episode.steps) + 1
        answer = player.answer(f"{t}/{steps} › ", _listed(seen.admissible), ledger)
        action = parse(f"{answer}{CLOSE}", opened=True).action
        before = seen
        world.pool.step([0], [action or ""])
        (seen,) = world.pool.receive([0])
        episode.steps.append(Step(blank, blank, blank, None, action, (0, 0), before.text, before.admissible))
        going = episode.observe(seen)
        if episode.failure is None:
            ledger = keep(episode)
            console.print(view.transition(t, action, seen.text, ledger.entries[-1], keep.settings))
        episode.truncated = going and t == steps


def _number(digits: str) -> int:
    """Python reads no number of thousands of digits; beyond a dozen they are all too large here."""
    return int(digits.lstrip("0")[:12] or 0)


def _listed(admissible: tuple[str, ...]) -> tuple[str, ...]:
    """The world's commands but its own help, a word that is ours here."""
    return tuple(command for command in admissible if command != "help")


if __name__ == "__main__":
    run(main)

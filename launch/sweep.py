"""Runs a grid of trainings and writes one tidy file of results; what is finished is kept, so it can be stopped and
started at any time.

python launch/sweep.py --config=configs/ablations/lambda.py [--jobs=2] [--config.sweep.seeds='(0,1)'] ...
"""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from absl import flags
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from launch.cells import Cell, cells
from launch.command import console, read_config, run
from launch.results import run_rows
from trca_jax.evaluation.results import write_results
from trca_jax.learner.record import read_run

_JOBS = flags.DEFINE_integer("jobs", 1, "Runs at once.", lower_bound=1)
_LOOK_S = 0.5  # between two looks at the runs
_STOPPED = (130, -signal.SIGINT)  # exit codes: saved, or before it could
_TRAIN = Path(__file__).with_name("train.py")


def main() -> int:
    config = read_config()
    grid = cells(config)
    root = grid[0].folder.parent
    results = partial(collect, config.sweep.name, grid, root)
    todo = [cell for cell in grid if not cell.finished()]
    root.mkdir(parents=True, exist_ok=True)
    console.print(f"{len(grid)} runs in {root}, {len(grid) - len(todo)} of them finished", soft_wrap=True)
    results()
    failed, stopped = [], False

    def ended(cell: Cell, code: int) -> None:
        results()
        if code:
            failed.append(cell)

    with Board(len(grid), len(grid) - len(todo)) as board:
        try:
            run_all(todo, _JOBS.value, board, ended)
        except KeyboardInterrupt:
            stopped = True
    path, rows = results()
    for line in (f"results   {path} ({rows} rows)", f"compare   python launch/compare.py {root}/*/"):
        console.print(line, soft_wrap=True)
    for cell in failed:
        console.print(f"failed    {cell.folder.name}: {last_line(log_of(cell))}", markup=False, soft_wrap=True)
    if stopped:
        console.print("Stopped, all saved; run the same command to go on.")
    return 130 if stopped else 2 if failed else 0


def collect(name: str, grid: Sequence[Cell], root: Path) -> tuple[Path, int]:
    """Writes results.jsonl anew from all runs of the sweep of this name that have begun, also those of an earlier grid;
    its path and its number of rows. Nothing in an old file is read, so a damaged one is repaired."""
    order = {cell.folder: place for place, cell in enumerate(grid)}
    begun = sorted((path.parent for path in root.glob("*/run.json")), key=lambda f: (order.get(f, len(order)), f))
    own = [folder for folder in begun if read_run(folder)["config"].get("sweep", {}).get("name") == name]
    rows = [row for folder in own for row in run_rows(folder)]
    write_results(root / "results.jsonl", rows)
    return root / "results.jsonl", len(rows)


@dataclass
class Job:
    """A run in a process of its own. Its log is locked as long as any of its processes lives."""

    cell: Cell
    process: subprocess.Popen
    log: BinaryIO


def start(cell: Cell) -> Job:
    """Starts a run. Raises ValueError if a process of an earlier sweep is still at it."""
    log = log_of(cell).open("ab")
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.close()
        raise ValueError(
            f"{cell.folder} is still being run, by another sweep or as the rest of one that was killed; wait for it or "
            "end it first"
        ) from None
    command = [sys.executable, str(_TRAIN), *own_arguments(), *cell.arguments()]
    log.truncate(0)
    # A session of its own: Ctrl-C in a terminal reaches it once, from here, and not twice.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    return Job(cell, process, log)


def own_arguments() -> list[str]:
    """The command line without what is for the sweep alone."""
    own, rest = [], iter(sys.argv[1:])
    for argument in rest:
        name, is_set, _ = argument.lstrip("-").partition("=")
        if name != "jobs":
            own.append(argument)
        elif not is_set:
            next(rest)
    return own


def run_all(todo: Sequence[Cell], jobs: int, board: Board, ended: Callable[[Cell, int], None]) -> None:
    """Runs all cells, so many at once; ended(cell, exit code) is called as each one ends.

    Ctrl-C is handed on to what runs; then KeyboardInterrupt is raised once all have ended, as it is if a run was
    stopped by someone else. A second Ctrl-C is handed on too, and runs then end without saving.
    """
    waiting, running = deque(todo), []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(start(waiting.popleft()))
                board.started(running[-1].cell)
            time.sleep(_LOOK_S)
            for job in list(running):
                board.look(job.cell)
                if (code := job.process.poll()) is not None:
                    running.remove(job)
                    job.log.close()
                    board.ended(job.cell, code)
                    if code in _STOPPED:
                        raise KeyboardInterrupt
                    ended(job.cell, code)
    finally:
        while running:
            for job in running:
                with suppress(ProcessLookupError):
                    job.process.send_signal(signal.SIGINT)
            with suppress(KeyboardInterrupt):
                while running:
                    code = running[0].process.wait()
                    job = running.pop(0)
                    job.log.close()
                    board.ended(job.cell, code)


def log_of(cell: Cell) -> Path:
    """Where the output of a run goes."""
    return cell.folder.with_name(cell.folder.name + ".log")


def last_line(path: Path) -> str:
    """What a run said last; its error, if it told one."""
    lines = path.read_text(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or ["it said nothing"])[-1].strip()


class Board:
    """Context manager that shows how far the runs are: bars on a terminal, and a line for each that begins or ends."""

    def __init__(self, runs: int, finished: int):
        columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn())
        self._progress = Progress(
            *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=not console.is_terminal
        )
        self._all = self._progress.add_task("runs", total=runs, completed=finished)
        self._bars = {}

    def __enter__(self) -> Board:
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()

    def started(self, cell: Cell) -> None:
        total = cell.config.iterations
        self._bars[cell.folder] = self._progress.add_task(cell.folder.name, total=total, completed=cell.progress())
        self._say(f"begun     {cell.folder.name}")

    def look(self, cell: Cell) -> None:
        self._progress.update(self._bars[cell.folder], completed=cell.progress())

    def ended(self, cell: Cell, code: int) -> None:
        self._progress.remove_task(self._bars.pop(cell.folder))
        self._progress.advance(self._all, 1 - bool(code))
        word = "finished" if code == 0 else "stopped" if code in _STOPPED else "failed"
        self._say(f"{word:9} {cell.folder.name}")

    def _say(self, text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)


if __name__ == "__main__":
    run(main)

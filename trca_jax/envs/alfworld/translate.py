"""From PDDL to the planning task that the engine plays, kept on disk: the slow part of an episode (0.1-1 s a game)."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import signal
import struct
import sys
import tempfile
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from trca_jax.envs.alfworld.games import Game
from trca_jax.envs.base import Task

FORMAT = 1
Progress = Callable[[int, int], None]
Fact = tuple[str, ...]  # predicate, entity ids


@dataclass(frozen=True)
class Translation:
    """One game as the engine wants it. sas: the planning task. facts: what holds at the start.
    parameters: action name -> names of its parameters."""

    sas: bytes
    facts: tuple[Fact, ...]
    parameters: dict[str, tuple[str, ...]]


@cache
def fast_downward() -> Any:
    """The package fast_downward. Raises ValueError when it is not there or was not built."""
    try:
        import fast_downward as module
        import textworld.envs.pddl  # noqa: F401  the grammar's parser, named in the same breath
    except (ImportError, OSError) as error:
        raise ValueError(
            f"the ALFWorld engine cannot be imported ({error}); run 'pip install -r requirements.txt': "
            "fast-downward-textworld is compiled on installation and needs g++ and make"
        ) from error
    return module


def load_library() -> Any:
    """A copy of Fast Downward's library of its own: the library is one global game state."""
    interface = fast_downward().interface
    whole = interface.DOWNWARD_LIB_PATH
    with tempfile.TemporaryDirectory() as folder:
        # The wheel's library carries 32 MB of debug sections behind 1 MB of code, and every copy stays on disk as long
        # as it is mapped: 128 slots would hold 4 GB.
        interface.DOWNWARD_LIB_PATH = os.path.join(folder, "libdownward.so")
        try:
            Path(interface.DOWNWARD_LIB_PATH).write_bytes(_loadable(str(whole)))
            return interface.load_lib()
        finally:
            interface.DOWNWARD_LIB_PATH = whole


@cache
def _loadable(path: str) -> bytes:
    """The part of an ELF file that the loader reads: up to the end of the last program segment."""
    with open(path, "rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":  # not 64-bit ELF (macOS): take it whole
            return head + file.read()
        start, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        file.seek(start)
        table = file.read(size * count)
        ends = [sum(struct.unpack_from("<Q", table, i * size + at)[0] for at in (8, 32)) for i in range(count)]
        file.seek(0)
        return file.read(max(ends))


def cache_folder() -> Path:
    """Where translations are kept: `$TRCA_CACHE/alfworld`, by default `~/.cache/trca_jax/alfworld`."""
    return Path(os.environ.get("TRCA_CACHE") or Path.home() / ".cache" / "trca_jax") / "alfworld"


def translate(game: Game) -> Translation:
    """The translation of a game, from the disk cache if it is there. Raises ValueError on PDDL that cannot be read."""
    path = _path(game)
    try:
        return _decode(path.read_bytes())
    except (OSError, ValueError, zlib.error):  # not there, or damaged: make it anew
        pass
    translation = _translate(game.domain, game.problem_text())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_encode(translation))
        os.replace(file.name, path)
    except OSError as error:
        warnings.warn(f"translations are not kept: cannot write {path.parent} ({error}); set TRCA_CACHE", stacklevel=2)
    return translation


def warm_cache(tasks: Iterable[Task], processes: int | None = None, progress: Progress = lambda done, of: None) -> int:
    """Translates games ahead and in parallel; returns how many were missing.

    processes: by default one a core. progress: called with (games done, games missing).
    """
    missing = list({path: task.payload for task in tasks if not (path := _path(task.payload)).exists()}.values())
    if not missing:
        return 0
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        with _deaf_children():
            games = pool.map(_keep, missing, chunksize=4)  # starts the processes
        for done, _ in enumerate(games, start=1):
            progress(done, len(missing))
    return len(missing)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started within do not hear Ctrl-C, which a terminal sends to all: this one is to handle it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _keep(game: Game) -> None:
    translate(game)


def _path(game: Game) -> Path:
    key = hashlib.sha256(f"{game.domain}\0{game.problem_text()}".encode()).hexdigest()
    return cache_folder() / _version() / key[:2] / f"{key}.z"


@cache
def _version() -> str:
    return f"{FORMAT}-{version('fast-downward-textworld')}-{version('textworld')}"


def _encode(translation: Translation) -> bytes:
    head = json.dumps({"facts": translation.facts, "parameters": translation.parameters})
    body = head.encode() + b"\n" + translation.sas
    return hashlib.sha256(body).digest() + zlib.compress(body)


def _decode(data: bytes) -> Translation:
    body = zlib.decompress(data[32:])
    if hashlib.sha256(body).digest() != data[:32]:
        raise ValueError("a cached translation is damaged")
    head, sas = body.split(b"\n", 1)
    head = json.loads(head)
    parameters = {name: tuple(places) for name, places in head["parameters"].items()}
    return Translation(sas, tuple(map(tuple, head["facts"])), parameters)


def _translate(domain: str, problem: str) -> Translation:
    fd = fast_downward()
    argv, collecting = sys.argv, gc.isenabled()
    gc.disable()  # a translation makes only garbage that dies at once; collecting it costs a fifth of the time
    try:
        task, sas = fd.pddl2sas(domain, problem)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"the game's PDDL cannot be translated ({reason}); the game is broken") from error
    finally:
        sys.argv = argv  # pddl2sas overwrites it
        if collecting:
            gc.enable()
    sas = sas.encode()
    facts = {(atom.predicate, *atom.args) for atom in task.init if getattr(atom, "predicate", "=") != "="}
    # The later definition of a split action names its parameters, as in TextWorld.
    parameters = {action.name: tuple(p.name.strip("?") for p in action.parameters) for action in task.actions}
    return Translation(sas, tuple(sorted(facts | _initial_facts(sas))), parameters)


@cache
def _scratch_library() -> Any:
    return load_library()


def _initial_facts(sas: bytes) -> set[Fact]:
    library, atom = _scratch_library(), fast_downward().Atom
    library.load_sas(sas)
    atoms = (atom * library.get_state_size())()
    library.get_state(atoms)
    return {fact for holds, fact in (parse_atom(a.name) for a in atoms) if holds}


def parse_atom(text: str) -> tuple[bool, Fact]:
    """`NegatedAtom holds(agent1, apple)` as (False, ("holds", "agent1", "apple"))."""
    kind, rest = text.split(" ", 1)
    name, arguments = rest.rstrip(")").split("(", 1)
    return kind == "Atom", (name, *(a for a in arguments.split(", ") if a))

"""Where ALFWorld games come from: a folder in the json_2.1.1 layout, the one-file archive, or the generator."""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trca_jax.envs.base import Task, TaskSet

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
SPLITS = ("train", "valid_seen", "valid_unseen")
RELEASE_COUNTS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
_SOLVABLE = re.compile(rb'"solvable"\s*:\s*true')
_GOAL_LINE = re.compile(r'(Your task is to: )([^"\n]*)(?=")')


@dataclass(frozen=True)
class Game:
    """What the engine needs of one game; a task's payload. Small to send: domain and grammar are shared by thousands.

    domain, grammar: texts, the goal sentence of the grammar replaced by PLACEHOLDER. problem: zlib of the PDDL problem.
    goal: the sentence after "Your task is to: ". walkthrough: commands that win, for tests and demonstrations.
    """

    domain: str
    grammar: str
    problem: bytes
    goal: str
    walkthrough: tuple[str, ...]

    PLACEHOLDER = "@GOAL@"

    @classmethod
    def pack(cls, domain: str, grammar: str, problem: str, goal: str, walkthrough: Sequence[str]) -> Game:
        return cls(domain, grammar, zlib.compress(problem.encode(), 1), goal, tuple(walkthrough))

    def problem_text(self) -> str:
        return zlib.decompress(self.problem).decode()


def load_games(
    source: str, split: str, *, task_types: Iterable[str] | None = None, count: int | None = None, seed: int = 0
) -> TaskSet:
    """The games of one split, the same on every machine.

    source: "generated", a folder (ALFWORLD_DATA, or json_2.1.1 itself), or an archive (.jsonl.xz). split: train,
    valid_seen or valid_unseen; an archive has valid_train too. task_types: only these of TASK_TYPES. count: how many,
    drawn with `seed` as evenly over the types as they allow; by default all (generated: 240 train, 120 other games).
    Raises ValueError on a source that is missing, broken or holds too few games.
    """
    kinds = tuple(TASK_TYPES if task_types is None else task_types)
    if unknown := set(kinds) - set(TASK_TYPES):
        raise ValueError(f"unknown ALFWorld task types {sorted(unknown)}; expected some of {', '.join(TASK_TYPES)}")
    if not kinds or (count is not None and count < 1):
        raise ValueError(f"no ALFWorld games asked for (task types {kinds}, count {count}); expected at least one")
    if source == "generated":
        from trca_jax.envs.alfworld.generator import VERSION, generate

        count = count or (240 if split == "train" else 120)
        found = sorted(generate(split, kinds, count, seed), key=lambda item: item[0])
        name = f"generator version {VERSION}, seed {seed}"
    else:
        path = Path(source).expanduser()
        if path.is_dir():
            found, name = _folder(path, split, kinds, count, seed), f"folder {path.name}"
        elif path.is_file():
            found, name = _archive(path, split, kinds, count, seed), f"archive {path.name}"
        else:
            raise ValueError(
                f"no ALFWorld games at {source!r}: no such folder or file; expected 'generated', a folder with "
                "json_2.1.1/train and so on, or a .jsonl.xz archive"
            )
    digest = hashlib.sha256()
    tasks = []
    for identity, game in found:
        digest.update(f"{identity}\0{game.goal}\0{game.problem_text()}\0".encode())
        tasks.append(Task(identity, "alfworld", game.goal, _kind(identity), game))
    return TaskSet(tuple(tasks), name, split, digest.hexdigest())


def _kind(identity: str) -> str:
    """The task type: a task's folder is named `<type>-<object>-<movable>-<receptacle>-<scene>`."""
    return identity.split("/")[1].split("-")[0]


def _select(ids: Iterable[str], where: str, kinds: Sequence[str], count: int | None, seed: int) -> list[str]:
    """The chosen ids, sorted."""
    by_kind: dict[str, list[str]] = {kind: [] for kind in kinds}
    for identity in sorted(ids):
        if _kind(identity) in by_kind:
            by_kind[_kind(identity)].append(identity)
    found = sum(map(len, by_kind.values()))
    if found == 0:
        raise ValueError(f"{where} holds no ALFWorld game of the types {', '.join(kinds)}")
    if count is None:
        return sorted(identity for pool in by_kind.values() for identity in pool)
    if count > found:
        raise ValueError(f"{count} ALFWorld games asked for, but {where} holds {found} of these types; ask for fewer")
    for pool in by_kind.values():
        pool.sort(key=lambda identity: hashlib.sha256(f"{seed} {identity}".encode()).digest())
    chosen: list[str] = []
    while len(chosen) < count:  # one of each type in turn
        chosen += [pool.pop() for pool in by_kind.values() if pool][: count - len(chosen)]
    return sorted(chosen)


def _check_count(split: str, found: int, where: str) -> None:
    expected = RELEASE_COUNTS.get(split, found)
    if expected // 2 < found != expected:
        warnings.warn(
            f"{where}: {found} {split} games, but the release json_2.1.2 has {expected}; results on these games do not "
            "compare with published ones",
            stacklevel=4,
        )


def _folder(path: Path, split: str, kinds: Sequence[str], count: int | None, seed: int) -> Iterator[tuple[str, Game]]:
    base = path / "json_2.1.1" if (path / "json_2.1.1").is_dir() else path
    folder = base / split
    if not folder.is_dir():
        names = ", ".join(SPLITS)
        raise ValueError(f"no ALFWorld split {split!r} in {path}: expected the folder {folder}; splits are {names}")
    files = {f"{split}/{f.parent.parent.name}/{f.parent.name}": f for f in folder.glob("*/*/game.tw-pddl")}
    # As ALFWorld itself does: no movable receptacles, no slices, and only games marked as solvable.
    files = {i: f for i, f in files.items() if _kind(i) in TASK_TYPES and "movable" not in i and "Sliced" not in i}
    files = {i: f for i, f in files.items() if _SOLVABLE.search(f.read_bytes())}
    _check_count(split, len(files), str(folder))
    chosen = _select(files, str(folder), kinds, count, seed)
    return ((identity, _read(files[identity])) for identity in chosen)


_texts: dict[str, str] = {}  # domains and grammars, one object for each text


def _read(file: Path) -> Game:
    try:
        data = json.loads(file.read_bytes())
        domain, grammar, problem = data["pddl_domain"], data["grammar"], data["pddl_problem"]
        walkthrough = data.get("walkthrough") or ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{file} is no ALFWorld game ({reason}); download the data again") from error
    goals = _GOAL_LINE.findall(grammar)
    if len(goals) != 1:
        raise ValueError(f"{file}: its grammar has {len(goals)} lines 'Your task is to: ...'; expected one")
    grammar = _GOAL_LINE.sub(rf"\g<1>{Game.PLACEHOLDER}", grammar)
    domain, grammar = _texts.setdefault(domain, domain), _texts.setdefault(grammar, grammar)
    return Game.pack(domain, grammar, problem, goals[0][1], walkthrough)


def _archive(path: Path, split: str, kinds: Sequence[str], count: int | None, seed: int) -> Iterator[tuple[str, Game]]:
    try:
        header, rows = _archive_rows(path, split)
        domain = header["pddl_domain"]
        grammar = header["grammar_template"].replace(header["goal_placeholder"], Game.PLACEHOLDER)
        rows = {row["path"]: (row["pddl_problem"], row["task"], row["walkthrough"]) for row in rows}
        if len(rows) != header["counts"][split]:
            raise ValueError(f"{len(rows)} {split} games, its first line says {header['counts'][split]}")
    except (OSError, EOFError, lzma.LZMAError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise ValueError(f"{path} is no archive of ALFWorld games ({type(error).__name__}: {error})") from error
    _check_count(split, len(rows), str(path))
    chosen = _select(rows, f"{path}, split {split},", kinds, count, seed)
    return ((identity, Game.pack(domain, grammar, *rows[identity])) for identity in chosen)


def _archive_rows(path: Path, split: str) -> tuple[dict, list[dict]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        header = json.loads(next(lines))
        if split not in header["counts"]:
            raise ValueError(f"no split {split!r}; it has {', '.join(header['counts'])}")
        return header, [json.loads(line) for line in lines if f'"{split}/' in line[:80]]  # the path comes first

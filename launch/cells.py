"""The cells of a sweep: which runs a grid consists of, each checked before any of them starts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from ml_collections import ConfigDict

from launch.command import check_config
from trca_jax.learner.metrics import read_metrics
from trca_jax.learner.record import check_same, read_run
from trca_jax.rollout.world import benchmark_of, library_of


@dataclass(frozen=True)
class Cell:
    """One run of a grid. changes: the fields in which it differs from the sweep's config. folder: of its run."""

    config: ConfigDict
    changes: tuple[tuple[str, Any], ...]
    folder: Path

    def arguments(self) -> list[str]:
        """What launch/train.py is told beside the sweep's own config."""
        return [f"--config.{name}={value}" for name, value in self.changes]

    def progress(self) -> int:
        """Iterations done."""
        return sum(m["kind"] == "train" for m in read_metrics(self.folder))

    def finished(self) -> bool:
        """Whether its run has ended and was evaluated as the config says.

        Raises ValueError if the folder holds another run, or a record that cannot be read.
        """
        if not (self.folder / "run.json").exists():
            return False
        before, now = read_run(self.folder), json.loads(self.config.to_json())
        check_same(self.folder, before, {"config": now})
        last = self.config.iterations
        ended = any(m["kind"] == "eval" and m["iteration"] == last for m in read_metrics(self.folder))
        return ended and before["config"]["eval"] == now["eval"]


def cells(config: ConfigDict) -> list[Cell]:
    """Every method with every setting, task type and seed of config.sweep, the seeds running fastest.

    Raises ValueError for a config without a grid, and for a cell that launch/train.py would not take.
    """
    if "sweep" not in config:
        raise ValueError("the config has no grid; give one of configs/ablations/, such as lambda.py")
    s, root = config.sweep, Path(config.workdir or f"runs/{config.sweep.name}")
    if not (s.methods and s.settings and s.seeds):
        raise ValueError("the grid is empty: config.sweep.methods, settings and seeds need at least one entry each")
    found = [_cell(config, root, *place) for place in product(s.methods, s.settings, s.task_types or (None,), s.seeds)]
    folders = [cell.folder for cell in found]
    if twice := next((folder for folder in folders if folders.count(folder) > 1), None):
        raise ValueError(f"two cells of the grid would be {twice.name!r}; give settings different names, seeds once")
    return found


def _cell(config: ConfigDict, root: Path, method: str, setting: Sequence, task_type: str | None, seed: int) -> Cell:
    try:
        (name, fields), seed = setting, int(seed)
        changes = [("method", method), *((str(field), value) for field, value in fields)]
    except (TypeError, ValueError):
        raise ValueError(
            f"config.sweep: {setting!r} with seed {seed!r}: expected settings (name, ((field, value), ...)) and whole "
            "numbers as seeds"
        ) from None
    if task_type is not None:
        changes.append(("env.task_types", (task_type,)))
    words = [method, name, task_type or "", str(seed)]
    folder = root / "-".join(re.sub(r"[^\w.=+]+", "_", word).strip("_") for word in words if word)
    changes += [("seed", seed), ("sweep.setting", name), ("workdir", str(folder))]
    own = config.copy_and_resolve_references()
    try:
        for field, value in changes:
            _set(own, field, value)
        check_config(own)
        library_of(own.env, benchmark_of(own.env))
    except (ValueError, TypeError) as error:
        raise ValueError(f"cell {folder.name!r} of the grid: {error}") from None
    return Cell(own, tuple(changes), folder)


def _set(config: ConfigDict, field: str, value: Any) -> None:
    *sections, name = field.split(".")
    for section in sections:
        config = config.get(section) if isinstance(config, ConfigDict) else None
    if not isinstance(config, ConfigDict) or name not in config:
        raise ValueError(f"the config has no field {field!r}; see configs/common.py for all of them")
    config[name] = value

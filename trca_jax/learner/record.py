"""What is written into a run folder so that its results can be understood and repeated."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ml_collections import ConfigDict

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "transformers", "alfworld", "textworld")
# What may differ when a run goes on: how long, where, and how often something is looked at or kept.
_FREE = (
    "iterations",
    "workdir",
    "checkpoint",
    "eval",
    "chat",
    "env.workers",
    "env.deadline_s",
    "env.patience_s",
    "mesh",
    "distributed",
)


def write_json(path: Path, content: Mapping) -> None:
    """Writes a JSON file atomically."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file atomically."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that a result may depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def open_run(folder: Path, config: ConfigDict, facts: Mapping) -> None:
    """Writes `run.json` (config, facts, versions) into a new run folder, or checks that the folder's run is this one.

    facts: what else the result depends on, such as hashes of the games and the weights ("evaluation" may change with
    the config's eval section). Raises ValueError naming the first field that differs from the run in the folder.
    """
    path = folder / "run.json"
    now = {"config": json.loads(config.to_json()), **facts, "versions": versions()}
    if path.exists():
        before = read_run(folder)
        for name, value in _flat(now).items():
            old = _flat(before).get(name)
            free = name.startswith(("versions", "evaluation", *(f"config.{prefix}" for prefix in _FREE)))
            if old != value and not free:
                raise ValueError(
                    f"{folder} holds a run with {name} = {old!r}, but this one has {value!r}; "
                    "use another --config.workdir, or the same settings to continue it"
                )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, now)
    except OSError as error:
        raise ValueError(f"cannot write the run folder {folder} ({error}); choose another --config.workdir") from error


def read_run(folder: Path) -> dict:
    """The record of a run folder. Raises ValueError if there is none."""
    path = Path(folder) / "run.json"
    if not path.is_file():
        raise ValueError(f"{folder} is no run folder: it has no run.json; give a folder that launch/train.py wrote")
    try:
        record = json.loads(path.read_text())
        if not {"config", "weights"} <= record.keys():
            raise ValueError("config or weights are missing")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it or start another run") from None
    return record


def _flat(content, prefix: str = "") -> dict:
    if not isinstance(content, Mapping):
        return {prefix: content}
    flat = {}
    for key, value in content.items():
        flat.update(_flat(value, f"{prefix}.{key}" if prefix else key))
    return flat

"""Episodes as bytes and back: what was played, and the public part of the tasks."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trca_jax.envs.base import Task
from trca_jax.rollout.episode import Episode, Step

_ARRAYS = {"prompt_ids": np.int32, "response_ids": np.int32, "behaviour_logp": np.float32}
_STEP = ("action", "action_span", "before", "admissible", "after", "reward", "answer")
_TASK = ("id", "benchmark", "instruction", "kind")
_EPISODE = ("group", "layout", "first_observation", "won", "truncated", "failure", "reflections")


def encode(episodes: Sequence[Episode]) -> bytes:
    """A compressed archive of arrays (tokens of all steps, one behind another) and one JSON text for the rest."""
    steps = [step for episode in episodes for step in episode.steps]
    text = [
        {
            "task": [getattr(e.task, name) for name in _TASK],
            **{name: getattr(e, name) for name in _EPISODE},
            "steps": [[getattr(s, n) for n in _STEP] for s in e.steps],
        }
        for e in episodes
    ]
    arrays = {"text": np.frombuffer(json.dumps(text).encode(), np.uint8)}
    for name, dtype in _ARRAYS.items():
        values = [getattr(step, name) for step in steps]
        arrays[name] = np.concatenate([np.zeros(0, dtype), *values]).astype(dtype)
        arrays[name + "_length"] = np.array([len(x) for x in values], np.int32)
    constrained = [step.allowed for step in steps if step.allowed is not None]
    arrays["constrained"] = np.array([step.allowed is not None for step in steps], bool)
    if constrained:
        arrays["allowed"] = np.concatenate(constrained)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def decode(data: bytes, tasks: Sequence[Task] | None = None) -> list[Episode]:
    """The episodes that `encode` wrote. tasks: theirs, in the same order; None: as they were, but without a payload.

    Raises ValueError if the number differs."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    text = json.loads(arrays["text"].tobytes())
    named = [Task(*record.pop("task"), payload=None) for record in text]
    tasks = named if tasks is None else tasks
    if len(text) != len(tasks):
        raise ValueError(f"the archive holds {len(text)} episodes, there are {len(tasks)} tasks")
    parts = {name: iter(np.split(arrays[name], np.cumsum(arrays[name + "_length"])[:-1])) for name in _ARRAYS}
    counts = arrays["response_ids_length"][arrays["constrained"]]
    allowed = iter(np.split(arrays["allowed"], np.cumsum(counts)[:-1]) if counts.size else ())
    constrained = iter(arrays["constrained"])
    episodes = []
    for record, task in zip(text, tasks, strict=True):
        steps = []
        for row in record.pop("steps"):
            fields = dict(zip(_STEP, row, strict=True))
            fields |= {"action_span": tuple(fields["action_span"]), "admissible": tuple(fields["admissible"])}
            tokens = {name: next(values) for name, values in parts.items()}
            steps.append(Step(**tokens, allowed=next(allowed) if next(constrained) else None, **fields))
        record["reflections"] = tuple(record["reflections"])
        episodes.append(Episode(task, steps=steps, **record))
    return episodes


def write_episodes(path: Path, episodes: Sequence[Episode]) -> None:
    """Writes a file of episodes atomically."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(encode(episodes))
    os.replace(part, path)


def read_episodes(path: Path) -> list[Episode]:
    """The episodes of a file, their tasks without a payload. Raises ValueError if it is no such file."""
    try:
        return decode(path.read_bytes())
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        problem = f"{path} holds no readable episodes ({error})"
        raise ValueError(f"{problem}; delete it to have them played again") from None

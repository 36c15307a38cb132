"""Files of named tensors in the safetensors format: read as views of the file, written piece by piece.

A file is the length of its header (8 bytes, little endian), the header (JSON: name → dtype, shape and byte range behind
the header) and the bytes of the tensors. Read here and not by the library of that name, as only views let a part of a
transposed tensor be taken without a copy of the whole.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
_NUMPY = {short: np.dtype(getattr(jnp, name)) for name, short in DTYPES.items()}


class Tensor(NamedTuple):
    """A tensor to be written: pieces() gives its numbers in order, in arrays of any size."""

    name: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[np.ndarray]]


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """name → read-only view of the tensor in the file, in its own type; bytes are read when they are used.

    Raises ValueError naming the file, and the tensor where there is one, if the file is shorter than its header says,
    if the header is damaged, and for a type other than float32, float16 and bfloat16.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        start = 8 + int.from_bytes(head, "little")
        if size < max(start, 9):
            raise _damaged(path, f"its header ends at byte {start}, the file at byte {size}")
        entries = []
        try:
            header = json.loads(file.read(start - 8))
            header.pop("__metadata__", None)
            for name, x in header.items():
                begin, end = x["data_offsets"]
                entries.append((name, x["dtype"], tuple(x["shape"]), begin, end))
        except (ValueError, AttributeError, KeyError, TypeError) as error:
            raise _damaged(path, f"its header cannot be read, {error}") from None
    mapped = np.memmap(path, np.uint8, mode="r")
    views = {}
    for name, dtype, shape, begin, end in entries:
        if dtype not in _NUMPY:
            raise ValueError(
                f"{path}: {name} has dtype {dtype}, expected one of {', '.join(_NUMPY)}; convert the weights to one"
            )
        count = math.prod(shape)
        if begin < 0 or end - begin != count * _NUMPY[dtype].itemsize:
            raise _damaged(path, f"{name} of shape {shape} and type {dtype} has {end - begin} bytes")
        if start + end > size:
            raise _damaged(path, f"{name} ends at byte {start + end}, the file at byte {size}")
        views[name] = np.frombuffer(mapped, _NUMPY[dtype], count, start + begin).reshape(shape)
    return views


def write_tensors(path: str | Path, tensors: Sequence[Tensor], dtype: str) -> None:
    """Writes a file of tensors, all rounded to dtype (a key of DTYPES); one piece at a time is held."""
    short, header, end = DTYPES[dtype], {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        begin, end = end, end + math.prod(tensor.shape) * _NUMPY[short].itemsize
        header[tensor.name] = {"dtype": short, "shape": tensor.shape, "data_offsets": (begin, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors are aligned
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            for piece in tensor.pieces():
                file.write(np.ascontiguousarray(piece, _NUMPY[short]).reshape(-1).view(np.uint8))
        file.flush()
        if path != os.devnull:
            os.fsync(file.fileno())


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(f"{path} is damaged or truncated: {what}; copy the file again")

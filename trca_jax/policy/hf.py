"""Weights in the Hugging Face format of Qwen2: a folder with config.json and one or several *.safetensors.

Parameters are read straight into the arrays of the devices that hold them and written straight from there, a layer of a
leaf at a time: the host never holds a second copy of the model, and each process reads what its own devices need.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils
from transformers import PreTrainedTokenizerBase

from trca_jax.policy.config import Qwen2Config, hf_config, read_json
from trca_jax.policy.qwen2 import param_shapes
from trca_jax.policy.tensors import DTYPES, Tensor, read_tensors, write_tensors

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
_SHARD_BYTES = 4_000_000_000  # of a file; as others write them
_PIECE_BYTES = 1 << 28  # held at once of a leaf that is not stacked


class _Leaf(NamedTuple):
    """One leaf of our tree and the tensors that it is published as.

    path: of the leaf. name: of the tensor, with {} for the layer. shape: ours, without the layers. inputs: how many
    leading axes of ours are the columns of the published [out, in] matrix; 0 for what is no matrix product.
    """

    path: tuple[str, ...]
    name: str
    layers: int | None
    shape: tuple[int, ...]
    inputs: int

    @property
    def published(self) -> tuple[int, ...]:
        """The shape of a published tensor."""
        if self.inputs:
            return math.prod(self.shape[self.inputs :]), math.prod(self.shape[: self.inputs])
        return (math.prod(self.shape),) if self.path[-1] == "bias" else self.shape

    def names(self) -> list[str]:
        return [self.name] if self.layers is None else [self.name.format(i) for i in range(self.layers)]

    def ours(self, x: np.ndarray) -> np.ndarray:
        """A published tensor in our shape: a view."""
        n, k = len(self.shape), self.inputs
        return x.reshape(self.shape[k:] + self.shape[:k]).transpose(*range(n - k, n), *range(n - k))

    def theirs(self, x: np.ndarray) -> np.ndarray:
        """The inverse of `ours`."""
        n, k = len(self.shape), self.inputs
        return x.transpose(*range(k, n), *range(k)).reshape(self.published)


_LAYER_NAMES = {
    ("input_norm", "weight"): "input_layernorm.weight",
    ("post_norm", "weight"): "post_attention_layernorm.weight",
    **{(n, part): f"self_attn.{n}_proj.{w}" for n in "qkv" for part, w in (("kernel", "weight"), ("bias", "bias"))},
    ("o", "kernel"): "self_attn.o_proj.weight",
    **{(n, "kernel"): f"mlp.{n}_proj.weight" for n in ("gate", "up", "down")},
}


def _leaves(config: Qwen2Config) -> list[_Leaf]:
    shapes = param_shapes(config)
    whole = {("embedding",): "model.embed_tokens.weight", ("norm", "weight"): "model.norm.weight"}
    if not config.tie_embeddings:
        whole[("lm_head",)] = "lm_head.weight"
    leaves = [_Leaf(path, name, None, _at(shapes, path).shape, 0) for path, name in whole.items()]
    for (module, part), name in _LAYER_NAMES.items():
        path = ("layers", module, part)
        layers, *shape = _at(shapes, path).shape
        inputs = 0 if part != "kernel" else 2 if module == "o" else 1
        leaves.append(_Leaf(path, f"model.layers.{{}}.{name}", layers, tuple(shape), inputs))
    return leaves


def _at(tree, path: tuple[str, ...]):
    for key in path:
        tree = tree[key]
    return tree


def weight_files(folder: str | Path) -> list[Path]:
    """model.safetensors of a folder, or else the files that its index names, sorted.

    Raises ValueError if there are neither, if the index is broken, and if a file that it names is missing.
    """
    folder = Path(folder)
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    index = folder / INDEX
    if not index.is_file():
        raise ValueError(
            f"{folder / SINGLE}: no such file, and no {INDEX} either; a model folder holds config.json, tokenizer.json "
            "and *.safetensors (other formats must be converted first)"
        )
    placed = read_json(index).get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(Path(str(n)).name == n for n in placed.values()):
        raise ValueError(f"{index}: expected weight_map, an object from tensors to files of the folder; copy it again")
    files = sorted({folder / name for name in placed.values()})
    if missing := [path.name for path in files if not path.is_file()]:
        raise ValueError(
            f"{index}: {len(missing)} of its {len(files)} files are missing, the first is {missing[0]}; copy them too"
        )
    return files


def read_model(folder: str | Path, config: Qwen2Config, shardings=None) -> dict:
    """The weights of a folder as our parameter tree of float32 arrays, whichever float type they are published in.

    shardings: where each leaf goes (`policy.qwen2.param_shardings`); every process calls this with the same. None: all
    on the default device. The head of a tied model is ignored if the files hold it.
    Raises ValueError as `weight_files` and `policy.tensors.read_tensors`, and if the tensors are not those of the
    config: one missing, one more, or one of another shape.
    """
    tensors: dict[str, np.ndarray] = {}
    for path in weight_files(folder):
        tensors |= read_tensors(path)
    leaves = _leaves(config)
    _check(folder, config, leaves, tensors)
    params: dict = {}
    for leaf in leaves:
        sharding = None if shardings is None else _at(shardings, leaf.path)
        *parents, last = leaf.path
        branch = params
        for key in parents:
            branch = branch.setdefault(key, {})
        shape = leaf.shape if leaf.layers is None else (leaf.layers, *leaf.shape)
        branch[last] = _place(shape, partial(_read, leaf, tensors), sharding)
    return params


def _check(folder, config: Qwen2Config, leaves: list[_Leaf], tensors: Mapping[str, np.ndarray]) -> None:
    expected = {name: leaf.published for leaf in leaves for name in leaf.names()}
    for name, shape in expected.items():
        if name not in tensors:
            raise ValueError(
                f"{folder}: {name} is missing from the weights; they belong to another architecture or size than "
                "config.json, or a file was left out"
            )
        if tensors[name].shape != shape:
            raise ValueError(
                f"{folder}: {name} has shape {tensors[name].shape}, expected {shape} from config.json; take both from "
                "the same model"
            )
    spare = {"lm_head.weight"} if config.tie_embeddings else set()
    # Old files also carry the constants of RoPE.
    if more := [name for name in tensors.keys() - expected.keys() - spare if not name.endswith("rotary_emb.inv_freq")]:
        raise ValueError(
            f"{folder}: {min(more)} has no place in the model of config.json; take both from the same model"
        )


def _read(leaf: _Leaf, tensors: Mapping[str, np.ndarray], index: tuple[slice, ...]) -> np.ndarray:
    """The part of a leaf at this index, float32; no more than it is read from the files."""
    if leaf.layers is None:
        return leaf.ours(tensors[leaf.name])[index].astype(np.float32)
    names = leaf.names()[index[0]]
    first = leaf.ours(tensors[names[0]])[index[1:]]
    part = np.empty((len(names), *first.shape), np.float32)
    for out, name in zip(part, names, strict=True):
        out[...] = leaf.ours(tensors[name])[index[1:]]
    return part


def _place(shape: tuple[int, ...], read: Callable[[tuple[slice, ...]], np.ndarray], sharding) -> jax.Array:
    """An array whose parts are read and sent to their devices one after another, a part that several hold just once."""
    if sharding is None:
        return jax.device_put(read((slice(None),) * len(shape)))
    holders = defaultdict(list)
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        holders[tuple(s.indices(n) for s, n in zip(index, shape, strict=True))].append(device)
    arrays = []
    for index, devices in holders.items():
        part = read(tuple(slice(*bounds) for bounds in index))
        # Waited for, so that the host is rid of this part before it reads the next one.
        arrays += jax.block_until_ready([jax.device_put(part, device) for device in devices])
    return jax.make_array_from_single_device_arrays(shape, sharding, arrays)


def published(config: Qwen2Config, params) -> Iterator[Tensor]:
    """The tensors of a parameter tree (numpy or JAX arrays, also sharded) under their published names, float32."""
    for leaf in _leaves(config):
        x = _at(params, leaf.path)
        if leaf.layers is None:
            yield Tensor(leaf.name, leaf.published, partial(_rows, x))
        else:
            for i, name in enumerate(leaf.names()):
                yield Tensor(name, leaf.published, partial(_layer, leaf, x, i))


def _rows(x) -> Iterator[np.ndarray]:
    step = max(_PIECE_BYTES // (x.nbytes // len(x)), 1)
    for start in range(0, len(x), step):
        yield _host(x[start : start + step])


def _layer(leaf: _Leaf, x, i: int) -> Iterator[np.ndarray]:
    yield leaf.theirs(_host(x[i]))


def _host(x) -> np.ndarray:
    """The whole of an array; all processes take part if its parts lie with several."""
    if isinstance(x, jax.Array) and not x.is_fully_addressable:
        return multihost_utils.process_allgather(x, tiled=True)
    return np.asarray(x)


def write_model(
    folder: str | Path, config: Qwen2Config, params, dtype: str = "float32",
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> None:  # fmt: skip
    """Writes config.json and the weights, rounded to dtype, and the tokenizer's files if one is given.

    Weights beyond about 4 GB are split into several files with an index. Everything is written beside its place first
    and then moved there, config.json last. Every process calls this; the first one writes.
    Raises ValueError for a dtype other than float32, bfloat16 and float16.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r} of the weights is unknown, expected one of {', '.join(DTYPES)}")
    folder, writes = Path(folder), jax.process_index() == 0
    folder.mkdir(parents=True, exist_ok=True)
    width = np.dtype(jax.numpy.dtype(dtype)).itemsize
    shards: list[list[Tensor]] = [[]]
    filled = total = 0
    for tensor in published(config, params):
        size = math.prod(tensor.shape) * width
        if shards[-1] and filled + size > _SHARD_BYTES:
            shards.append([])
            filled = 0
        shards[-1].append(tensor)
        filled, total = filled + size, total + size
    of = len(shards)
    names = [SINGLE] if of == 1 else [f"model-{i:05}-of-{of:05}.safetensors" for i in range(1, of + 1)]
    for name, shard in zip(names, shards, strict=True):
        # The other processes gather all the same, as each needs their parts.
        write_tensors(folder / f"{name}.part" if writes else os.devnull, shard, dtype)
    if writes:
        content = hf_config(config, dtype)
        if tokenizer is not None:
            tokenizer.save_pretrained(str(folder))
            content["eos_token_id"] = tokenizer.eos_token_id  # or `generate` does not know where an answer ends
        texts = {"config.json": content}
        if of > 1:
            placed = {tensor.name: name for name, shard in zip(names, shards, strict=True) for tensor in shard}
            texts = {INDEX: {"metadata": {"total_size": total}, "weight_map": placed}, **texts}
        for name, content in texts.items():
            (folder / f"{name}.part").write_text(json.dumps(content, indent=2) + "\n")
        for name in [*names, *texts]:
            os.replace(folder / f"{name}.part", folder / name)
        for old in set(folder.glob("model*.safetensors*")) - {folder / name for name in [*names, *texts]}:
            old.unlink()  # of weights that stood here before
    multihost_utils.sync_global_devices("write_model")

"""Weights in the Hugging Face format of Qwen2: a folder with config.json and model.safetensors."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from trca_jax.policy.config import Qwen2Config, hf_config

# Our name -> published name inside a layer.
_LAYER = {
    ("input_norm", "weight"): "input_layernorm.weight",
    ("post_norm", "weight"): "post_attention_layernorm.weight",
    **{(n, part): f"self_attn.{n}_proj.{w}" for n in "qkv" for part, w in (("kernel", "weight"), ("bias", "bias"))},
    ("o", "kernel"): "self_attn.o_proj.weight",
    **{(n, "kernel"): f"mlp.{n}_proj.weight" for n in ("gate", "up", "down")},
}


def to_hf(config: Qwen2Config, params) -> dict[str, np.ndarray]:
    """Our parameter tree as the flat dict that `transformers` expects ([out, in] matrices)."""
    out = {
        "model.embed_tokens.weight": np.asarray(params["embedding"]),
        "model.norm.weight": np.asarray(params["norm"]["weight"]),
    }
    if not config.tie_embeddings:
        out["lm_head.weight"] = np.asarray(params["lm_head"])
    for (module, part), name in _LAYER.items():
        stacked = np.asarray(params["layers"][module][part])
        for i, x in enumerate(stacked):
            if part == "kernel":
                x = x.reshape(config.hidden_size, -1) if module in "qkv" else x.reshape(-1, x.shape[-1])
                x = x.T
            out[f"model.layers.{i}.{name}"] = np.ascontiguousarray(x.reshape(-1) if part == "bias" else x)
    return out


def from_hf(config: Qwen2Config, tensors) -> dict:
    """The inverse of `to_hf`. Raises ValueError naming the first tensor that is missing or has another shape."""
    c = config
    kernel = {
        "q": (c.hidden_size, c.num_heads, c.head_dim), "k": (c.hidden_size, c.num_kv_heads, c.head_dim),
        "v": (c.hidden_size, c.num_kv_heads, c.head_dim), "o": (c.num_heads, c.head_dim, c.hidden_size),
        "gate": (c.hidden_size, c.intermediate_size), "up": (c.hidden_size, c.intermediate_size),
        "down": (c.intermediate_size, c.hidden_size),
    }  # fmt: skip

    def take(name, shape):
        if name not in tensors:
            raise ValueError(f"weights: {name} is missing; the file belongs to another architecture or size")
        if tensors[name].shape != shape:
            raise ValueError(f"weights: {name} has shape {tensors[name].shape}, expected {shape} from config.json")
        return np.asarray(tensors[name], np.float32)

    def layer(module, part, name):
        """One layer's tensor, published as [out, in] or [out], in our shape."""
        if part == "weight":
            return take(name, (c.hidden_size,))
        shape = kernel[module]
        if part == "bias":
            return take(name, (math.prod(shape[1:]),)).reshape(shape[1:])
        inputs = math.prod(shape[:-1]) if module == "o" else shape[0]
        return take(name, (math.prod(shape) // inputs, inputs)).T.reshape(shape)

    layers: dict = {}
    for (module, part), name in _LAYER.items():
        rows = [layer(module, part, f"model.layers.{i}.{name}") for i in range(c.num_layers)]
        layers.setdefault(module, {})[part] = np.stack(rows)
    params = {
        "embedding": take("model.embed_tokens.weight", (c.vocab_size, c.hidden_size)),
        "layers": layers,
        "norm": {"weight": take("model.norm.weight", (c.hidden_size,))},
    }
    if not c.tie_embeddings:
        params["lm_head"] = take("lm_head.weight", (c.vocab_size, c.hidden_size))
    return params


def write_model(folder: str | Path, config: Qwen2Config, params) -> None:
    """Writes config.json and model.safetensors, each atomically."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("config.json", json.dumps(hf_config(config, "float32"), indent=2).encode()),
        ("model.safetensors", save(to_hf(config, params), metadata={"format": "pt"})),
    ):
        part = folder / (name + ".part")
        part.write_bytes(content)
        os.replace(part, folder / name)


def read_model(folder: str | Path, config: Qwen2Config) -> dict:
    """Reads model.safetensors of a folder into our parameter tree. Raises ValueError if it is missing or misfits."""
    path = Path(folder) / "model.safetensors"
    if not path.is_file():
        raise ValueError(
            f"{path}: no such file; a model folder holds config.json, tokenizer.json and model.safetensors"
        )
    try:
        return from_hf(config, load_file(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None

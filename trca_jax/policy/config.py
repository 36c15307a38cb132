"""Sizes of the policy: one frozen record, read from and written to a Hugging Face `config.json`."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

from trca_jax.policy.sharding import ShardingRules

# Nothing; all of a layer but its products with weights; all of it.
REMAT = ("none", "dots", "layer")


@dataclass(frozen=True)
class Qwen2Config:
    """The Qwen2.5 architecture: RMSNorm, RoPE, grouped-query attention with QKV biases, SwiGLU.

    dtype is the compute type ("float32" on CPU, "bfloat16" on accelerators); parameters, logits, softmax and RoPE stay
    in float32. remat: what the backward pass computes again, one of REMAT. rules: how parameters and activations are
    laid out on the mesh of the context.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float = 1e6
    rms_norm_eps: float = 1e-6
    tie_embeddings: bool = True
    dtype: str = "float32"
    remat: str = "layer"
    rules: ShardingRules = field(default_factory=ShardingRules)

    def __post_init__(self):
        if self.remat not in REMAT:
            raise ValueError(f"remat {self.remat!r} is unknown, expected one of {', '.join(REMAT)}")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} must be a multiple of num_kv_heads {self.num_kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} must be even: RoPE rotates pairs")


def tiny(vocab_size: int) -> Qwen2Config:
    """About 0.85 M parameters: learns on two CPU cores."""
    return Qwen2Config(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=384, num_layers=4, num_heads=4, num_kv_heads=2,
        head_dim=32, rope_theta=1e4, remat="none",
    )  # fmt: skip


def _published(hidden, intermediate, layers, heads, kv_heads, *, tied: bool) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=151_936 if tied else 152_064, hidden_size=hidden, intermediate_size=intermediate, num_layers=layers,
        num_heads=heads, num_kv_heads=kv_heads, head_dim=hidden // heads, tie_embeddings=tied,
    )  # fmt: skip


# The published Qwen2.5-*-Instruct sizes. (The base models from 14B on differ in rms_norm_eps, 1e-5, alone.)
PRESETS = {
    "qwen2.5-0.5b": _published(896, 4864, 24, 14, 2, tied=True),
    "qwen2.5-1.5b": _published(1536, 8960, 28, 12, 2, tied=True),
    "qwen2.5-3b": _published(2048, 11008, 36, 16, 2, tied=True),
    "qwen2.5-7b": _published(3584, 18944, 28, 28, 4, tied=False),
    "qwen2.5-14b": _published(5120, 13824, 48, 40, 8, tied=False),
    "qwen2.5-32b": _published(5120, 27648, 64, 40, 8, tied=False),
    "qwen2.5-72b": _published(8192, 29568, 80, 64, 8, tied=False),
}


def preset(name: str, **overrides) -> Qwen2Config:
    """A published size, for what needs no weights; overrides as in `read_config`. Raises ValueError for other names."""
    if name not in PRESETS:
        raise ValueError(f"model size {name!r} is unknown, expected one of {', '.join(PRESETS)}")
    return dataclasses.replace(PRESETS[name], **overrides)


_HF_NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "rms_norm_eps": "rms_norm_eps",
    "tie_embeddings": "tie_word_embeddings",
}


def read_json(path: Path) -> dict:
    """The object in a JSON file. Raises ValueError naming the file if it is broken or no object."""
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON ({error}); copy it again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a JSON {type(content).__name__}, expected an object; copy it again")
    return content


def read_config(folder: str | Path, **overrides) -> Qwen2Config:
    """Reads `config.json` of a Hugging Face folder; overrides replace fields such as dtype.

    Raises ValueError if the file is missing, or describes another architecture or a variant that `policy.qwen2` does
    not compute (sliding windows, scaled RoPE).
    """
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; a model folder holds config.json, tokenizer.json and *.safetensors")
    hf = read_json(path)
    if hf.get("model_type") != "qwen2":
        raise ValueError(
            f"{path}: model_type is {hf.get('model_type')!r}, expected 'qwen2'; give a Qwen2 or Qwen2.5 model"
        )
    missing = [hf_name for hf_name in _HF_NAMES.values() if hf_name not in hf]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing; is this the config.json of a Qwen2 model?")
    if hf.get("use_sliding_window"):
        raise ValueError(
            f"{path}: use_sliding_window is true, expected false: every layer attends to all earlier tokens"
        )
    fields = {name: hf[hf_name] for name, hf_name in _HF_NAMES.items()}
    fields["head_dim"] = hf.get("head_dim") or hf["hidden_size"] // hf["num_attention_heads"]
    # Published files carry rope_theta at the top and rope_scaling beside it, newer ones have both in rope_parameters.
    rope = {**(hf.get("rope_scaling") or {}), **(hf.get("rope_parameters") or {})}
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind != "default":
        raise ValueError(f"{path}: RoPE is scaled by {kind!r}, expected plain RoPE; give a model without rope_scaling")
    theta = hf.get("rope_theta") or rope.get("rope_theta")
    if not theta:
        raise ValueError(f"{path}: rope_theta missing; is this the config.json of a Qwen2 model?")
    fields["rope_theta"] = float(theta)
    return dataclasses.replace(Qwen2Config(**fields), **overrides)


def hf_config(config: Qwen2Config, dtype: str) -> dict:
    """The `config.json` content that `transformers` loads as Qwen2ForCausalLM. dtype: of the weights in the file."""
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        **{hf_name: getattr(config, name) for name, hf_name in _HF_NAMES.items()},
        "head_dim": config.head_dim,
        "rope_theta": config.rope_theta,
        "hidden_act": "silu",
        "torch_dtype": dtype,
    }

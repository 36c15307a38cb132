"""Sizes of the policy: one frozen record, read from and written to a Hugging Face `config.json`."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

from trca_jax.policy.sharding import ShardingRules


@dataclass(frozen=True)
class Qwen2Config:
    """The Qwen2.5 architecture: RMSNorm, RoPE, grouped-query attention with QKV biases, SwiGLU.

    dtype is the compute type ("float32" on CPU, "bfloat16" on accelerators); parameters, logits, softmax and RoPE stay
    in float32. remat recomputes each layer in the backward pass. rules: how parameters and activations are laid out on
    the mesh of the context.
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
    remat: bool = True
    rules: ShardingRules = field(default_factory=ShardingRules)

    def __post_init__(self):
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} must be a multiple of num_kv_heads {self.num_kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} must be even: RoPE rotates pairs")


def tiny(vocab_size: int) -> Qwen2Config:
    """About 0.85 M parameters: learns on two CPU cores."""
    return Qwen2Config(
        vocab_size=vocab_size, hidden_size=128, intermediate_size=384, num_layers=4, num_heads=4, num_kv_heads=2,
        head_dim=32, rope_theta=1e4, remat=False,
    )  # fmt: skip


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


def read_config(folder: str | Path, **overrides) -> Qwen2Config:
    """Reads `config.json` of a Hugging Face folder; overrides replace fields such as dtype.

    Raises ValueError if the file is missing or describes another architecture.
    """
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; a model folder holds config.json, tokenizer.json and *.safetensors")
    hf = json.loads(path.read_text())
    if hf.get("model_type") != "qwen2":
        raise ValueError(f"{path}: model_type is {hf.get('model_type')!r}, expected 'qwen2'")
    missing = [hf_name for hf_name in _HF_NAMES.values() if hf_name not in hf]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing; is this the config.json of a Qwen2 model?")
    fields = {name: hf[hf_name] for name, hf_name in _HF_NAMES.items()}
    fields["head_dim"] = hf.get("head_dim") or hf["hidden_size"] // hf["num_attention_heads"]
    # Published files carry rope_theta at the top, newer ones inside rope_parameters.
    theta = hf.get("rope_theta") or (hf.get("rope_parameters") or {}).get("rope_theta")
    if not theta:
        raise ValueError(f"{path}: rope_theta missing; is this the config.json of a Qwen2 model?")
    fields["rope_theta"] = float(theta)
    return dataclasses.replace(Qwen2Config(**fields), **overrides)


def hf_config(config: Qwen2Config) -> dict:
    """The `config.json` content that `transformers` loads as Qwen2ForCausalLM."""
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        **{hf_name: getattr(config, name) for name, hf_name in _HF_NAMES.items()},
        "head_dim": config.head_dim,
        "rope_theta": config.rope_theta,
        "hidden_act": "silu",
        "torch_dtype": "float32",
    }

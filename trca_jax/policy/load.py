"""From a name or a folder to a policy: configuration, parameters and tokenizer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from trca_jax.policy.config import Qwen2Config, read_config
from trca_jax.policy.hf import read_model
from trca_jax.policy.tokenizer import read_tokenizer

_ASSETS = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Policy:
    """params: nested dict of numpy arrays. sha256: of the weights file, for the record of a run."""

    config: Qwen2Config
    params: dict
    tokenizer: PreTrainedTokenizerBase
    sha256: str


def load_policy(model: str, dtype: str = "float32") -> Policy:
    """model: the name of a shipped model, or a local Hugging Face folder. Raises ValueError if it is neither."""
    shipped = sorted(path.name for path in _ASSETS.iterdir() if path.is_dir()) if _ASSETS.is_dir() else []
    folder = _ASSETS / model if model in shipped else Path(model).expanduser()
    if not model or not folder.is_dir():
        raise ValueError(
            f"agent.model {model!r} is neither a shipped model ({', '.join(shipped)}) nor a folder; give the path of a "
            "Hugging Face folder with config.json, tokenizer.json and *.safetensors"
        )
    config = read_config(folder, dtype=dtype)
    params = read_model(folder, config)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    return Policy(config, params, read_tokenizer(folder), digest)

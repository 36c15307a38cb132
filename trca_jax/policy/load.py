"""From a name or a folder to a policy: configuration, parameters and tokenizer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from jax.sharding import Mesh
from transformers import PreTrainedTokenizerBase

from trca_jax.policy.config import PRESETS, Qwen2Config, preset, read_config
from trca_jax.policy.hf import read_model, weight_files
from trca_jax.policy.qwen2 import param_shardings
from trca_jax.policy.tokenizer import check_vocabulary, read_tokenizer

_ASSETS = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Policy:
    """params: nested dict of float32 arrays. sha256: over the weight files, for the record of a run."""

    config: Qwen2Config
    params: dict
    tokenizer: PreTrainedTokenizerBase
    sha256: str


def model_config(model: str, **computed) -> Qwen2Config:
    """The size of a model that may have no weights here: the name of a published size, or as `load_policy`."""
    return preset(model, **computed) if model in PRESETS else read_config(_folder(model), **computed)


def _folder(model: str) -> Path:
    shipped = sorted(path.name for path in _ASSETS.iterdir() if path.is_dir()) if _ASSETS.is_dir() else []
    folder = _ASSETS / model if model in shipped else Path(model).expanduser()
    if not model or not folder.is_dir():
        raise ValueError(
            f"agent.model {model!r} is neither a shipped model ({', '.join(shipped)}) nor a folder; give the path of a "
            "Hugging Face folder with config.json, tokenizer.json and *.safetensors, --config.agent.model=FOLDER"
        )
    return folder


def load_policy(model: str, mesh: Mesh | None = None, **computed) -> Policy:
    """model: the name of a shipped model, or a local Hugging Face folder. mesh: the parameters are laid out on, by the
    sharding rules; None puts them on the default device. computed: fields of Qwen2Config that its files do not say, how
    it is computed (dtype, remat, rules).

    Raises ValueError if the model is neither, and if its files are missing, damaged or do not fit together.
    """
    folder = _folder(model)
    config = read_config(folder, **computed)
    tokenizer = read_tokenizer(folder)
    check_vocabulary(config.vocab_size, tokenizer)
    params = read_model(folder, config, None if mesh is None else param_shardings(config, mesh))
    return Policy(config, params, tokenizer, fingerprint(folder))


def fingerprint(folder: str | Path) -> str:
    """sha256 (hex) over the bytes of all weight files of a folder, one after another in the order of their names."""
    digest = hashlib.sha256()
    for path in weight_files(folder):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()

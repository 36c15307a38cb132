"""Weights and config in the Hugging Face format: equal bits back, and errors that name the tensor."""

import json
import tracemalloc

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny import TINY, UNTIED, random_params

from trca_jax.policy import hf
from trca_jax.policy.config import Qwen2Config, read_config
from trca_jax.policy.hf import published, read_model, write_model
from trca_jax.policy.qwen2 import param_shardings
from trca_jax.policy.sharding import make_mesh


def flat(params):
    return {jax.tree_util.keystr(path): np.asarray(x) for path, x in jax.tree_util.tree_leaves_with_path(params)}


def tensors(config, params):
    whole = lambda tensor: np.ascontiguousarray(np.concatenate(list(tensor.pieces())))  # noqa: E731
    return {tensor.name: whole(tensor) for tensor in published(config, params)}


def assert_same(found, expected):
    found, expected = flat(found), flat(expected)
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], x, err_msg=name)


def test_a_written_model_is_read_back_bit_by_bit(config, weights, folder):
    assert read_config(folder, remat="none") == config
    assert_same(read_model(folder, config), weights)
    assert_same(read_model(folder, config, param_shardings(config, make_mesh())), weights)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_matrices_are_published_as_outputs_by_inputs(config, weights):
    found, layer = tensors(config, weights), {k: x["kernel"][1] for k, x in weights["layers"].items() if "kernel" in x}
    assert ("lm_head.weight" in found) == (not config.tie_embeddings)
    name = "model.layers.1.self_attn.{}_proj.weight"
    # Row 8·h + d of q is feature d of head h; column 8·h + d of o as well.
    np.testing.assert_array_equal(found[name.format("q")][8 * 3 + 5], layer["q"][:, 3, 5])
    np.testing.assert_array_equal(found[name.format("k")][8 * 1 + 2], layer["k"][:, 1, 2])
    np.testing.assert_array_equal(found[name.format("o")][:, 8 * 3 + 5], layer["o"][3, 5])
    np.testing.assert_array_equal(found["model.layers.1.mlp.down_proj.weight"], layer["down"].T)
    bias = weights["layers"]["q"]["bias"][1]
    np.testing.assert_array_equal(found["model.layers.1.self_attn.q_proj.bias"], np.reshape(bias, -1))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_published_half_precision_weights_become_float32(weights, config, tmp_path, dtype):
    half = {name: x.astype(dtype) for name, x in tensors(config, weights).items()}
    half["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(4, dtype)  # of old files
    save_file(half, tmp_path / "model.safetensors")
    assert_same(read_model(tmp_path, config), jax.tree.map(lambda x: x.astype(dtype).astype(np.float32), weights))


def test_the_head_of_a_tied_model_is_ignored(weights, tmp_path):
    extra = np.ones((TINY.vocab_size, TINY.hidden_size), np.float32)
    tied = random_params(TINY)
    save_file({**tensors(TINY, tied), "lm_head.weight": extra}, tmp_path / "model.safetensors")
    assert_same(read_model(tmp_path, TINY), tied)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_are_rounded_once_and_the_config_says_to_what(config, weights, tmp_path, dtype):
    write_model(tmp_path, config, weights, dtype)
    assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == dtype
    assert {str(x.dtype) for x in load_file(tmp_path / "model.safetensors").values()} == {dtype}
    assert_same(read_model(tmp_path, config), jax.tree.map(lambda x: x.astype(dtype).astype(np.float32), weights))
    with pytest.raises(ValueError, match="dtype 'int8' of the weights is unknown, expected one of float32, float16"):
        write_model(tmp_path, config, weights, "int8")


def test_a_large_model_is_split_and_leaves_nothing_of_the_last_one(config, weights, tmp_path, monkeypatch):
    write_model(tmp_path, config, weights)
    monkeypatch.setattr(hf, "_SHARD_BYTES", 12_000)
    monkeypatch.setattr(hf, "_PIECE_BYTES", 1_000)
    write_model(tmp_path, config, weights)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    files = {name: load_file(tmp_path / name) for name in set(index["weight_map"].values())}
    assert index["weight_map"] == {tensor: name for name, content in files.items() for tensor in content}
    sizes = [sum(x.nbytes for x in content.values()) for content in files.values()]
    assert index["metadata"]["total_size"] == sum(sizes) and max(sizes) <= 12_000 and len(files) >= 4
    assert {path.name for path in tmp_path.iterdir()} == {*files, "config.json", "model.safetensors.index.json"}
    assert f"model-00001-of-{len(files):05}.safetensors" in files
    assert_same(read_model(tmp_path, config), weights)


def test_a_broken_or_incomplete_index_is_refused(config, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(hf, "_SHARD_BYTES", 12_000)
    write_model(tmp_path, config, weights)
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    for text, message in {
        "{": "is no JSON",
        "{}": "expected weight_map",
        json.dumps({"weight_map": {"x": "../x.safetensors"}}): "expected weight_map",
    }.items():
        index.write_text(text)
        with pytest.raises(ValueError, match=rf"index\.json.*{message}.*copy it again"):
            read_model(tmp_path, config)
    index.write_text(json.dumps(content))
    lost = tmp_path / content["weight_map"]["model.norm.weight"]
    lost.rename(tmp_path / "elsewhere")
    with pytest.raises(
        ValueError, match=rf"index\.json: 1 of its \d+ files are missing, the first is {lost.name}; copy"
    ):
        read_model(tmp_path, config)
    lost.write_bytes((tmp_path / "elsewhere").read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"{lost.name} is damaged or truncated: .* ends at byte"):
        read_model(tmp_path, config)


def test_a_wrong_file_is_refused_by_the_name_of_the_tensor(weights, config, tmp_path):
    good = tensors(config, weights)
    name = "model.layers.1.self_attn.k_proj.weight"
    cases = {
        f"{name} is missing from the weights; they belong": {k: x for k, x in good.items() if k != name},
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
        r"model.layers.2.self_attn.k_proj.weight has no place": {**good, name.replace(".1.", ".2."): good[name]},
    }  # fmt: skip
    for message, content in cases.items():
        save_file(content, tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match=f"{tmp_path}: {message}"):
            read_model(tmp_path, config)


def test_an_untied_config_needs_a_head(tmp_path):
    save_file(tensors(TINY, random_params(TINY)), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"lm_head\.weight is missing"):
        read_model(tmp_path, UNTIED)


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"model\.safetensors: no such file, and no model\.safetensors\.index\.json"):
        read_model(tmp_path, TINY)


def test_an_interrupted_write_leaves_the_old_file(folder, config, weights, monkeypatch):
    before = load_file(folder / "model.safetensors")
    monkeypatch.setattr("trca_jax.policy.hf.os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        write_model(folder, config, jax.tree.map(lambda x: x * 0, weights))
    after = load_file(folder / "model.safetensors")
    np.testing.assert_array_equal(after["model.norm.weight"], before["model.norm.weight"])


def test_the_host_holds_no_second_copy(tmp_path, monkeypatch):
    """Reading holds a leaf (JAX lets go of the last one only when it is called again), writing one layer of one."""
    size = Qwen2Config(
        vocab_size=256, hidden_size=128, intermediate_size=512, num_layers=8, num_heads=4, num_kv_heads=2, head_dim=32
    )
    params = random_params(size)
    leaves = jax.tree.leaves(params)
    total, leaf = sum(x.nbytes for x in leaves), max(x.nbytes for x in leaves)
    write_model(tmp_path, size, params)  # compiles

    def peak(call):
        tracemalloc.start()
        call()
        _, high = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return high

    # As with an accelerator: on the CPU an array may be the buffer that was read, and then counts as held.
    put = jax.device_put
    monkeypatch.setattr(jax, "device_put", lambda x, device=None: put(x, device).copy().block_until_ready())
    read_model(tmp_path, size)
    slack = 1 << 19
    writing = peak(lambda: write_model(tmp_path, size, params, "bfloat16"))
    reading = peak(lambda: read_model(tmp_path, size))
    print(f"model {total:,} bytes, largest leaf {leaf:,}, held while reading {reading:,}, writing {writing:,}")
    assert reading < 2 * leaf + slack < 0.6 * total
    assert writing < leaf / size.num_layers + slack

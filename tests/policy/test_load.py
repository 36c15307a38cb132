"""A policy from a folder: its parts fit together, and its weights have one fingerprint."""

import hashlib

import jax
import numpy as np
import pytest
from tiny import TINY, random_params

from trca_jax.policy import hf
from trca_jax.policy.load import load_policy
from trca_jax.policy.sharding import make_mesh
from trca_jax.policy.tokenizer import word_tokenizer

WORDS = " ".join(f"w{i}" for i in range(TINY.vocab_size))


@pytest.fixture
def model(tmp_path):
    """A folder whose tokenizer has 50 ids, ten less than the embedding has rows."""
    hf.write_model(tmp_path, TINY, random_params(TINY), tokenizer=word_tokenizer([" ".join(WORDS.split()[:46])]))
    return tmp_path


def test_a_folder_is_loaded_with_rows_to_spare(model):
    policy = load_policy(str(model), dtype="bfloat16")
    assert policy.config.dtype == "bfloat16" and len(policy.tokenizer) == 50
    assert all(isinstance(x, jax.Array) and x.dtype == np.float32 for x in jax.tree.leaves(policy.params))
    assert policy.sha256 == hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()


def test_the_fingerprint_is_over_all_files_in_order(model, monkeypatch):
    monkeypatch.setattr(hf, "_SHARD_BYTES", 10_000)
    hf.write_model(model, TINY, random_params(TINY))
    files = sorted(model.glob("model-*.safetensors"))
    assert len(files) > 2
    assert load_policy(str(model)).sha256 == hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def test_parameters_lie_on_the_mesh(model):
    mesh = make_mesh()
    policy = load_policy(str(model), mesh=mesh)
    assert all(x.sharding.mesh == mesh for x in jax.tree.leaves(policy.params))
    jax.tree.map(np.testing.assert_array_equal, policy.params, load_policy(str(model)).params)


def test_a_tokenizer_with_more_ids_than_rows_is_refused(model):
    word_tokenizer([WORDS]).save_pretrained(str(model))
    with pytest.raises(ValueError, match="tokenizer has 64 ids, but the model's vocab_size is 60; use the tokenizer"):
        load_policy(str(model))

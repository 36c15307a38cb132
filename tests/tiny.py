"""The smallest Qwen2 that has everything (grouped heads, two layers), with weights that make every term count."""

import dataclasses

import jax
import numpy as np

from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.qwen2 import init_params

TINY = Qwen2Config(
    vocab_size=60, hidden_size=32, intermediate_size=48, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8,
    rope_theta=5e4, remat="none",
)  # fmt: skip
UNTIED = dataclasses.replace(TINY, tie_embeddings=False)


def random_params(config, seed=0, scale=0.3):
    """Every parameter random, also the biases and norms that fresh parameters hold at 0 and 1."""
    shapes = jax.eval_shape(lambda key: init_params(config, key), jax.random.key(0))
    rng = np.random.default_rng(seed)
    params = jax.tree.map(lambda leaf: scale * rng.standard_normal(leaf.shape, np.float32), shapes)
    for norm in (params["norm"], params["layers"]["input_norm"], params["layers"]["post_norm"]):
        norm["weight"] += 1
    return jax.device_put(params)

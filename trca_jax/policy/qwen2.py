"""Qwen2.5 in Flax Linen: one scanned decoder layer, the same code with and without a key-value cache.

Axes: B rows, L query tokens, S cache slots, N layers, K key-value heads, G query heads a key-value head, H head size.
A cached row is contiguous: the slot of a token is its position, so a query at position p sees exactly the slots <= p.
Whatever lies behind a row's end is never seen and is overwritten when the row grows.
"""

from __future__ import annotations

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import struct
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.sharding import constrain

# Queries are taken in blocks, so that only a part of the attention matrix is held at a time, and without a cache only
# its lower triangle computed.
_BLOCK = 128
_HIDDEN = -1e30  # finite, so that a row that sees nothing stays finite


CACHE_AXES = ("layers", "batch", "kv_heads", "length", "head_dim")


@struct.dataclass
class Cache:
    """Keys and values of every layer, [N, B, K, S, H]."""

    k: jax.Array
    v: jax.Array


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def empty_cache(config: Qwen2Config, rows: int, slots: int) -> Cache:
    """A cache for `rows` rows of at most `slots` tokens."""
    shape = (config.num_layers, rows, config.num_kv_heads, slots, config.head_dim)
    return Cache(*(constrain(jnp.zeros(shape, config.dtype), config.rules, *CACHE_AXES) for _ in range(2)))


def _rope(x, positions, theta):
    """Rotates the halves of x [B, L, heads, H] by position · θ^(−2i/H) (float32)."""
    half = x.shape[-1] // 2
    angle = positions[..., None].astype(jnp.float32) * theta ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, :, None], jnp.sin(angle)[:, :, None]
    a, b = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1).astype(x.dtype)


def _attend(q, k, v, seen):
    """Softmax attention; q [B, K, G, L, H], k and v [B, K, S, H], seen [B or 1, L, S] booleans -> like q."""
    scores = jnp.einsum("bkglh,bksh->bkgls", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    scores += jnp.where(seen, 0.0, _HIDDEN)[:, None, None]
    return jnp.einsum("bkgls,bksh->bkglh", nn.softmax(scores, axis=-1).astype(v.dtype), v)


def _cached(q, k, v, positions):
    """Attention to the slots of a cache up to the position of each query."""
    out = []
    for start in range(0, q.shape[3], _BLOCK):
        seen = jnp.arange(k.shape[2]) <= positions[:, start : start + _BLOCK, None]
        out.append(_attend(q[:, :, :, start : start + _BLOCK], k, v, seen))
    return jnp.concatenate(out, axis=3)


def _causal(q, k, v, segment_ids):
    """Causal attention inside each segment (all tokens are one segment if segment_ids is None)."""
    length = q.shape[3]
    index = jnp.arange(length)
    out = []
    for start in range(0, length, _BLOCK):
        stop = min(start + _BLOCK, length)
        seen = (index[start:stop, None] >= index[:stop])[None]
        if segment_ids is not None:
            seen &= segment_ids[:, start:stop, None] == segment_ids[:, None, :stop]
        out.append(_attend(q[:, :, :, start:stop], k[:, :, :stop], v[:, :, :stop], seen))
    return jnp.concatenate(out, axis=3)


def _dense(config: Qwen2Config, features, axes, name, use_bias=False, axis=-1):
    return nn.DenseGeneral(
        features, axis=axis, use_bias=use_bias, dtype=config.dtype, name=name,
        kernel_init=nn.with_logical_partitioning(nn.initializers.normal(0.02), axes),
        bias_init=nn.with_logical_partitioning(nn.initializers.zeros, axes[1:]),
    )  # fmt: skip


class RMSNorm(nn.Module):
    """x / sqrt(mean(x²) + ε) · weight, in float32."""

    config: Qwen2Config

    @nn.compact
    def __call__(self, x):
        weight = self.param("weight", nn.with_logical_partitioning(nn.initializers.ones, ("embed",)), (x.shape[-1],))
        x32 = x.astype(jnp.float32)
        x32 *= jax.lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + self.config.rms_norm_eps)
        return (x32 * weight).astype(x.dtype)


class Layer(nn.Module):
    """One decoder layer; the carry is (hidden [B, L, D], cache or None)."""

    config: Qwen2Config

    @nn.compact
    def __call__(self, carry, layer, positions, segment_ids):
        c = self.config
        x, cache = carry
        h = RMSNorm(c, name="input_norm")(x)
        q = _dense(c, (c.num_heads, c.head_dim), ("embed", "heads", "head_dim"), "q", use_bias=True)(h)
        k = _dense(c, (c.num_kv_heads, c.head_dim), ("embed", "kv_heads", "head_dim"), "k", use_bias=True)(h)
        v = _dense(c, (c.num_kv_heads, c.head_dim), ("embed", "kv_heads", "head_dim"), "v", use_bias=True)(h)
        q, k = _rope(q, positions, c.rope_theta), _rope(k, positions, c.rope_theta)
        # Heads before tokens: the batched products then run on contiguous matrices (twice as fast on CPU).
        q = q.reshape(*q.shape[:2], c.num_kv_heads, -1, c.head_dim).transpose(0, 2, 3, 1, 4)
        k, v = k.swapaxes(1, 2), v.swapaxes(1, 2)
        if cache is None:
            out = _causal(q, k, v, segment_ids)
        else:
            rows, heads = jnp.ogrid[: x.shape[0], : c.num_kv_heads]
            at = (layer, rows[..., None], heads[..., None], positions[:, None])
            cache = Cache(cache.k.at[at].set(k), cache.v.at[at].set(v))
            out = _cached(q, cache.k[layer], cache.v[layer], positions)
        out = out.transpose(0, 3, 1, 2, 4).reshape(*x.shape[:2], c.num_heads, c.head_dim)
        x += _dense(c, c.hidden_size, ("heads", "head_dim", "embed"), "o", axis=(-2, -1))(out)
        h = RMSNorm(c, name="post_norm")(x)
        gate = _dense(c, c.intermediate_size, ("embed", "mlp"), "gate")(h)
        up = _dense(c, c.intermediate_size, ("embed", "mlp"), "up")(h)
        x += _dense(c, c.hidden_size, ("mlp", "embed"), "down")(nn.silu(gate) * up)
        return (constrain(x, c.rules, "batch", "length", "hidden"), cache), None


class Qwen2(nn.Module):
    """Token ids to final hidden states; the head is applied by `policy.head`, chunk by chunk."""

    config: Qwen2Config

    @nn.compact
    def __call__(self, tokens, positions, segment_ids=None, cache: Cache | None = None):
        """tokens, positions [B, L] -> (hidden [B, L, D], cache).

        Without a cache attention is causal by index inside each segment id [B, L] (None: one segment a row; padding
        behind the end needs no mask). With a cache the new keys and values are written at `positions` first.
        """
        c = self.config
        # An untied head is a parameter of its own, with the same shape and axes as the embedding.
        table = nn.with_logical_partitioning(nn.initializers.normal(0.02), ("vocab", "embed"))
        embedding = self.param("embedding", table, (c.vocab_size, c.hidden_size))
        if not c.tie_embeddings:
            self.param("lm_head", table, (c.vocab_size, c.hidden_size))
        x = constrain(_whole(c, embedding)[tokens], c.rules, "batch", "length", "hidden")
        layer = Layer
        if cache is None and c.remat != "none":
            kept = jax.checkpoint_policies.dots_with_no_batch_dims_saveable if c.remat == "dots" else None
            layer = nn.remat(Layer, prevent_cse=False, policy=kept)
        layers = nn.scan(
            layer, variable_axes={"params": 0}, split_rngs={"params": True}, length=c.num_layers,
            in_axes=(0, nn.broadcast, nn.broadcast), metadata_params={nn.PARTITION_NAME: "layers"},
        )  # fmt: skip
        (x, cache), _ = layers(c, name="layers")((x, cache), jnp.arange(c.num_layers), positions, segment_ids)
        return RMSNorm(c, name="norm")(x), cache


def param_shardings(config: Qwen2Config, mesh: Mesh):
    """Where every parameter lives: a NamedSharding a leaf, by the config's rules. Raises as `ShardingRules.spec`."""
    tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    boxed = jax.eval_shape(Qwen2(config).init, jax.random.key(0), tokens, tokens)["params"]
    place = lambda names, x: NamedSharding(mesh, config.rules.spec(names, x.shape, dict(mesh.shape)))  # noqa: E731
    return jax.tree.map(
        place, nn.get_partition_spec(boxed), nn.unbox(boxed), is_leaf=lambda x: isinstance(x, PartitionSpec)
    )


def compute_copy(config: Qwen2Config, params):
    """The parameters in the type they are computed in. Forward passes with them are equal to those with the originals,
    as the model rounds to the same type: norms, which it applies in float32, stay as they are."""
    keep = lambda path: "norm" in jax.tree_util.keystr(path)  # noqa: E731
    return jax.tree_util.tree_map_with_path(lambda path, x: x if keep(path) else x.astype(config.dtype), params)


def init_params(config: Qwen2Config, key: jax.Array):
    """Random float32 parameters: one plain nested dict, the layers stacked on a leading axis."""
    tokens = jnp.zeros((1, 1), jnp.int32)
    return nn.unbox(Qwen2(config).init(key, tokens, tokens)["params"])


def param_shapes(config: Qwen2Config):
    """The tree of `init_params`, of shapes and types only."""
    return jax.eval_shape(lambda: init_params(config, jax.random.key(0)))


def parameter_count(config: Qwen2Config) -> tuple[int, int]:
    """The number of parameters, and how many of them are neither the embedding's nor the head's."""
    sizes = {name: sum(x.size for x in jax.tree.leaves(part)) for name, part in param_shapes(config).items()}
    return sum(sizes.values()), sizes["layers"] + sizes["norm"]


def output_embedding(config: Qwen2Config, params) -> jax.Array:
    """The head's matrix [V, D], in the compute type."""
    return _whole(config, params["embedding" if config.tie_embeddings else "lm_head"])


def _whole(config: Qwen2Config, table):
    """[V, D] in the compute type, whole along D: gathered once, not for every chunk of the head or at every token."""
    return constrain(table.astype(config.dtype), config.rules, "vocab", "hidden")

"""From names of axes to places on a mesh, without devices."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P
from tiny import TINY, random_params

from trca_jax.learner.state import state_shardings
from trca_jax.policy.qwen2 import compute_copy, param_shardings
from trca_jax.policy.sharding import ShardingRules, constrain, make_mesh, mesh_sizes

SIZES = {"data": 2, "fsdp": 4, "tp": 2}
RULES = ShardingRules()


@pytest.mark.parametrize(
    ("axes", "shape", "expected"),
    [
        (("layers", "embed", "heads", "head_dim"), (4, 64, 6, 16), P(None, "fsdp", "tp", None)),
        (("vocab", "embed"), (100, 64), P("tp", "fsdp")),
        (("batch", "length", "hidden"), (16, 7, 64), P(("data", "fsdp"), None, None)),
        # What does not divide: whole, or over the first axes that do.
        (("embed", "kv_heads", "head_dim"), (64, 1, 16), P("fsdp", None, None)),
        (("batch", "length"), (2, 7), P("data", None)),
        (("batch", "length"), (4, 7), P("data", None)),
        (("batch", "length"), (1, 7), P(None, None)),
    ],
)
def test_an_axis_is_split_where_the_mesh_divides_it(axes, shape, expected):
    assert RULES.spec(axes, shape, SIZES) == expected


def test_axes_of_size_one_split_nothing():
    assert RULES.spec(("batch", "length"), (3, 7), {"data": 1, "fsdp": 1, "tp": 1}) == P(None, None)


def test_with_replication_off_an_uneven_split_is_an_error():
    strict = dataclasses.replace(RULES, replicate=False)
    assert strict.spec(("embed", "kv_heads", "head_dim"), (64, 2, 16), SIZES) == P("fsdp", "tp", None)
    with pytest.raises(ValueError, match="kv_heads of size 2 cannot be split over tp:4; choose a mesh that divides it"):
        strict.spec(("embed", "kv_heads", "head_dim"), (64, 2, 16), {"data": 1, "fsdp": 2, "tp": 4})


def test_collisions_and_unknown_axes_are_errors():
    with pytest.raises(ValueError, match="'batch' and 'embed' of one array are both split over 'fsdp'"):
        RULES.spec(("batch", "embed"), (16, 64), SIZES)
    for name in ("heights", "replicate"):
        with pytest.raises(ValueError, match=f"no sharding rule for axis '{name}'"):
            RULES.spec(("layers", name), (4, 64), SIZES)


def test_a_mesh_is_read_from_text():
    assert mesh_sizes("data:2, tp:4") == {"data": 2, "fsdp": 1, "tp": 4}
    assert dict(make_mesh("", jax.devices()[:1]).shape) == {"data": 1, "fsdp": 1, "tp": 1}
    for text in ("pipe:2", "fsdp", "fsdp:0", "fsdp:two"):
        with pytest.raises(ValueError, match="is none of data:N, fsdp:N, tp:N"):
            mesh_sizes(text)
    with pytest.raises(ValueError, match=r"mesh 'fsdp:4' needs 1 x 4 x 1 = 4 devices, there are 1"):
        make_mesh("fsdp:4", jax.devices()[:1])


def test_without_a_mesh_nothing_is_constrained():
    x = jnp.ones((2, 3))
    assert constrain(x, RULES, "batch", "length") is x


def test_every_parameter_has_a_place_and_its_moments_the_same():
    mesh = make_mesh("", jax.devices()[:1])
    params, places = random_params(TINY), param_shardings(TINY, mesh)
    assert jax.tree.structure(params) == jax.tree.structure(places)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    state = state_shardings(tx, jax.device_put(params, places), mesh)
    assert jax.tree.leaves(state.opt_state[1][0].mu) == jax.tree.leaves(places) == jax.tree.leaves(state.params)
    assert state.opt_state[1][0].count == state.updates


def test_the_compute_copy_gives_what_the_master_weights_give():
    """Bit by bit, as the model rounds to the same type; norms stay in float32."""
    from trca_jax.policy.qwen2 import Qwen2

    half = dataclasses.replace(TINY, dtype="bfloat16")
    params = random_params(TINY)
    copy = compute_copy(half, params)
    tokens, positions = np.arange(24).reshape(2, 12), np.arange(12)[None].repeat(2, axis=0)
    run = jax.jit(lambda p: Qwen2(half).apply({"params": p}, tokens, positions)[0])
    np.testing.assert_array_equal(run(params), run(copy))
    assert copy["layers"]["gate"]["kernel"].dtype == jnp.bfloat16 and copy["norm"]["weight"].dtype == jnp.float32
    assert copy["layers"]["post_norm"]["weight"].dtype == jnp.float32

"""The copy of the weights that rollouts are sampled with."""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.qwen2 import compute_copy, param_shardings
from trca_jax.policy.sharding import MESH_AXES


class Replica:
    """Every process samples on its own devices, at its own pace, with all weights in the compute type: rows are split
    over its devices, heads over the tp axis, nothing over fsdp (a decoded token would have to gather every weight).

    config: for the sampler. mesh: the context (`jax.set_mesh`) of its calls.
    Raises ValueError if the tp axis of the training mesh reaches beyond a process.
    """

    def __init__(self, config: Qwen2Config, mesh: Mesh):
        own = [d for d in mesh.devices.flat if d.process_index == jax.process_index()]
        tp = mesh.shape["tp"]
        if len(own) % tp:
            raise ValueError(f"mesh axis tp:{tp} must divide the {len(own)} devices of a process; choose a smaller one")
        self.config = dataclasses.replace(config, rules=dataclasses.replace(config.rules, embed=()))
        self.mesh = Mesh(np.array(own).reshape(1, -1, tp), MESH_AXES, axis_types=(AxisType.Auto,) * 3)
        self._training_mesh = mesh
        whole = param_shardings(self.config, mesh)
        self._copy = jax.jit(functools.partial(compute_copy, config), out_shardings=whole)
        self._places = param_shardings(self.config, self.mesh)

    def __call__(self, params):
        """Global training weights to this process's copy."""

        def own(x, place):
            shards = [shard.data for shard in x.addressable_shards]
            return jax.make_array_from_single_device_arrays(x.shape, place, shards)

        with jax.set_mesh(self._training_mesh):
            copy = self._copy(params)
        return jax.tree.map(own, copy, self._places)

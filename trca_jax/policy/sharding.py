"""Where arrays live: the mesh, and one table from the names of array axes to the axes of the mesh.

Mesh axes: data (copies of the weights, each with its own rows), fsdp (rows and weights are both split over it), tp
(heads, MLP features and vocabulary are split). Weights name their axes where they are made (`policy.qwen2`),
activations where they are constrained; optimizer moments lie as their parameters do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

MESH_AXES = ("data", "fsdp", "tp")


@dataclass(frozen=True)
class ShardingRules:
    """Logical axis → mesh axes that it is split over, in this order; () keeps it whole.

    batch, length, hidden: of activations. layers, embed, heads, kv_heads, head_dim, mlp, vocab: of parameters.
    replicate: an axis that the mesh does not divide is split over as many of its first mesh axes as do divide it;
    False makes that an error.
    """

    batch: tuple[str, ...] = ("data", "fsdp")
    length: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    embed: tuple[str, ...] = ("fsdp",)
    heads: tuple[str, ...] = ("tp",)
    kv_heads: tuple[str, ...] = ("tp",)
    head_dim: tuple[str, ...] = ()
    mlp: tuple[str, ...] = ("tp",)
    vocab: tuple[str, ...] = ("tp",)
    replicate: bool = True

    def spec(self, axes: Sequence[str], shape: Sequence[int], sizes: Mapping[str, int]) -> PartitionSpec:
        """Where an array of this shape goes on a mesh of these sizes; axes: the logical name of each of its axes.

        Raises ValueError for a name that is not in the table, for two axes of one array that claim the same mesh axis,
        and, with replicate off, for an axis that cannot be split evenly.
        """
        taken: dict[str, str] = {}
        out = []
        for name, size in zip(axes, shape, strict=True):
            wanted = getattr(self, name, None)
            if not isinstance(wanted, tuple):
                raise ValueError(f"no sharding rule for axis {name!r} of an array with axes {tuple(axes)}")
            used: list[str] = []
            for axis in wanted:
                if axis in taken:
                    raise ValueError(f"axes {taken[axis]!r} and {name!r} of one array are both split over {axis!r}")
                taken[axis] = name
                if size % math.prod(sizes.get(a, 1) for a in [*used, axis]):
                    if not self.replicate:
                        raise ValueError(
                            f"{name} of size {size} cannot be split over {axis}:{sizes[axis]}; choose a mesh that "
                            "divides it, or let the rules replicate"
                        )
                    break
                used.append(axis)
            split = tuple(a for a in used if sizes.get(a, 1) > 1)
            out.append(split[0] if len(split) == 1 else split or None)
        return PartitionSpec(*out)


def mesh_sizes(text: str) -> dict[str, int]:
    """`data:2,fsdp:4` -> the size of every mesh axis; axes that are not named have size 1.

    Raises ValueError for an unknown axis and a size that is none.
    """
    sizes = dict.fromkeys(MESH_AXES, 1)
    for part in filter(None, text.replace(" ", "").split(",")):
        axis, _, size = part.partition(":")
        if axis not in sizes or not size.isdigit() or int(size) < 1:
            raise ValueError(f"mesh {text!r}: {part!r} is none of {', '.join(f'{a}:N' for a in MESH_AXES)}")
        sizes[axis] = int(size)
    return sizes


def make_mesh(text: str = "", devices: Sequence[jax.Device] | None = None) -> Mesh:
    """The mesh of all devices (or these) that `mesh_sizes` reads; '' puts all on fsdp. Devices of one process stay
    neighbours.

    Raises ValueError as `mesh_sizes`, and for a product that is not the number of devices.
    """
    devices = jax.devices() if devices is None else devices
    sizes = mesh_sizes(text or f"fsdp:{len(devices)}")
    if math.prod(sizes.values()) != len(devices):
        shown = " x ".join(str(n) for n in sizes.values())
        raise ValueError(f"mesh {text!r} needs {shown} = {math.prod(sizes.values())} devices, there are {len(devices)}")
    return Mesh(np.array(devices).reshape(*sizes.values()), MESH_AXES, axis_types=(AxisType.Auto,) * len(sizes))


def constrain(x: jax.Array, rules: ShardingRules, *axes: str) -> jax.Array:
    """The same array, laid out by the rules on the mesh of the context (`jax.set_mesh`); nothing without one."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return x
    return jax.lax.with_sharding_constraint(x, rules.spec(axes, x.shape, dict(mesh.shape)))


def replicated(mesh: Mesh) -> NamedSharding:
    """A whole copy on every device."""
    return NamedSharding(mesh, PartitionSpec())

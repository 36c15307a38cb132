"""What a run will need, found by compiling it ahead of time: neither weights nor the devices have to be there.

The CPU compiler, which is all there is then, widens bfloat16 and would keep a second copy of the weights for it. So
everything is compiled in float32: temporaries are an upper bound, up to twice what a GPU needs in bfloat16. Weights,
moments and caches are counted exactly, in their own types.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from trca_jax.learner.state import TrainState, state_shardings
from trca_jax.learner.throughput import forward_flops
from trca_jax.learner.update import PPOSettings, make_scorer, make_update
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.decoding import Decoding
from trca_jax.policy.qwen2 import compute_copy, param_shapes, param_shardings
from trca_jax.policy.replica import Replica
from trca_jax.policy.sampler import lower_turn
from trca_jax.rollout.pack import TokenBatch


@dataclass(frozen=True)
class Workload:
    """prompt, response: tokens of a row. rows: decoded at once, by a process, while the
    other half of its rows keeps its cache. minibatch: rows of one optimizer step.
    rollouts, steps: of an iteration."""

    prompt: int
    response: int
    rows: int
    minibatch: int
    rollouts: int
    steps: int


@dataclass(frozen=True)
class Stage:
    """What a stage adds on each device, in bytes, to what stays there through an iteration. weights: a copy of its own.
    cache: keys and values of both halves. temporaries: activations, gradients. flops: of one call, over all devices."""

    name: str
    weights: int
    cache: int
    temporaries: int
    flops: float

    @property
    def bytes(self) -> int:
        return self.weights + self.cache + self.temporaries


class Planner:
    """Compiles the stages of an iteration for a mesh.

    state: bytes a device of weights, moments and (not if `offload`) the frozen start policy: they stay through an
    iteration.
    """

    def __init__(
        self, config: Qwen2Config, mesh: Mesh, tx: optax.GradientTransformation, settings: PPOSettings, work: Workload,
        *, offload: bool,
    ):  # fmt: skip
        self._wide = dataclasses.replace(config, dtype="float32")
        self._config, self._mesh, self._tx, self._settings, self._work = config, mesh, tx, settings, work
        places = param_shardings(config, mesh)
        params = _placed(param_shapes(config), places)
        self._places = state_shardings(tx, params, mesh)
        state = TrainState(params, jax.eval_shape(tx.init, params), jax.ShapeDtypeStruct((), jnp.int32))
        self._state = _placed(state, self._places)
        frozen = _bytes(_placed(_copy(config), places))
        self.state = _bytes(self._state) + (0 if offload else frozen)
        self._borrowed = frozen if offload else 0

    def update(self, micro_rows: int) -> Stage:
        """One optimizer step over a minibatch, so many rows at a time."""
        work = dataclasses.replace(self._work, minibatch=-(-self._work.minibatch // micro_rows) * micro_rows)
        settings = dataclasses.replace(self._settings, micro_rows=micro_rows)
        advantage = jax.ShapeDtypeStruct((work.rollouts, work.steps), jnp.float32)
        with jax.set_mesh(self._mesh):
            update = make_update(self._wide, self._tx, settings, self._places)
            compiled = update.lower(self._state, _token_batch(work), advantage).compile()
        return Stage("update", 0, 0, _temporaries(compiled), 3 * self._flops(work.minibatch))

    def reference(self, micro_rows: int) -> Stage:
        """Log-probabilities of a minibatch under the frozen start policy."""
        score = make_scorer(
            self._wide, temperature=self._settings.temperature, micro_rows=micro_rows, out=self._places.updates
        )
        frozen = _placed(_copy(self._wide), self._places.params)
        work = dataclasses.replace(self._work, minibatch=-(-self._work.minibatch // micro_rows) * micro_rows)
        with jax.set_mesh(self._mesh):
            compiled = score.lower(frozen, _token_batch(work).replace(reference_logp=None)).compile()
        return Stage("reference", self._borrowed, 0, _temporaries(compiled), self._flops(work.minibatch))

    def sampler(self) -> Stage:
        """All rows' prompts read at once, and an answer of full length to each."""
        work, replica = self._work, Replica(self._wide, self._mesh)
        shapes = {"rows": work.rows, "prompt": work.prompt, "max_new": work.response}
        places = param_shardings(replica.config, replica.mesh)
        decoding = Decoding(self._settings.temperature)
        with jax.set_mesh(replica.mesh):
            lowered, cache = lower_turn(
                replica.config, _placed(_copy(self._wide), places), replica.mesh, decoding=decoding, **shapes
            )
            compiled = lowered.compile()
        narrow = jax.tree.map(lambda x: x.update(dtype=self._config.dtype), cache)
        weights = _bytes(_placed(_copy(self._config), places))
        return Stage("sampler", weights, 2 * _bytes(narrow), _temporaries(compiled), self._flops(work.rows))

    def largest_micro_rows(self, memory: int) -> int:
        """The most rows of one forward and backward pass with which the update fits into `memory` bytes a device, a
        multiple of the devices that share rows; 0 if none does. Temporaries are taken to grow linearly from the two
        smallest ones."""
        step = self._mesh.shape["data"] * self._mesh.shape["fsdp"]
        one, two = (self.update(rows).bytes for rows in (step, 2 * step))
        room = memory - self.state - one
        return 0 if room < 0 else step * (1 + int(room // max(two - one, 1)))

    def _flops(self, rows: int) -> float:
        work = self._work
        return forward_flops(self._config, [work.prompt + work.response] * rows, rows * work.response)


def _copy(config: Qwen2Config):
    return jax.eval_shape(lambda p: compute_copy(config, p), param_shapes(config))


def _placed(shapes, places):
    return jax.tree.map(lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), shapes, places)


def _bytes(tree) -> int:
    """On one device."""
    sizes = (np.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in jax.tree.leaves(tree))
    return int(sum(sizes))


def _temporaries(compiled) -> int:
    """Results that take the place of a donated argument are no new memory."""
    memory = compiled.memory_analysis()
    return memory.temp_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes


def _token_batch(work: Workload) -> TokenBatch:
    length = work.prompt + work.response
    shape = lambda dtype, width=length: jax.ShapeDtypeStruct((work.minibatch, width), dtype)  # noqa: E731
    return TokenBatch(
        tokens=shape(jnp.int32), segment_ids=shape(jnp.int8), behaviour_logp=shape(jnp.float32),
        response_mask=shape(bool), action_mask=shape(bool), transition=shape(jnp.int32), place=shape(jnp.int32),
        allowed=None, scored=shape(jnp.int32, work.response), reference_logp=shape(jnp.float32),
    )  # fmt: skip

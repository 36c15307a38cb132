"""What a run needs: memory on each device, arithmetic, the largest micro-batch. Neither weights nor GPUs are needed.

python launch/plan.py --config=configs/alfworld.py:qwen2.5-7b --mesh=fsdp:4 [--memory=80] [--prompt=2048]
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import jax
from absl import flags
from rich.table import Table

from launch.command import computed, console, read_config, run
from trca_jax.learner.loop import ppo_settings
from trca_jax.learner.plan import Planner, Stage, Workload
from trca_jax.learner.state import optimizer
from trca_jax.policy.load import model_config
from trca_jax.policy.qwen2 import param_shapes
from trca_jax.policy.sharding import make_mesh, mesh_sizes

_MESH = flags.DEFINE_string("mesh", None, "The mesh to plan for, such as fsdp:4 or data:2,fsdp:4,tp:2.")
_MEMORY = flags.DEFINE_float("memory", 80.0, "Memory of a device in GB (10^9 bytes).", lower_bound=0.001)
_PROMPT = flags.DEFINE_integer("prompt", None, "Tokens of a prompt; by default the largest of agent.buckets.chunk.")
# What a device keeps for itself: the runtime, and room that fragments.
_MARGIN = 0.05


def main() -> int:
    config = read_config("configs/alfworld.py:qwen2.5-1.5b")
    text = _MESH.value or config.mesh
    if not text:
        raise ValueError("--mesh is missing: the mesh to plan for, such as fsdp:4")
    jax.config.update("jax_num_cpu_devices", math.prod(mesh_sizes(text).values()))
    c, size = config, model_config(config.agent.model, **computed(config))
    work = Workload(
        prompt=_PROMPT.value or c.agent.buckets.chunk[-1], response=c.agent.max_new,
        rows=-(-c.tasks * c.group_size // 2), minibatch=2 * c.ppo.micro_rows, rollouts=c.tasks * c.group_size,
        steps=c.env.max_steps,
    )  # fmt: skip
    tx = optimizer(
        lr=c.ppo.lr, warmup=c.ppo.warmup, weight_decay=c.ppo.weight_decay, clip_norm=c.ppo.clip_norm, b2=c.ppo.b2
    )
    planner = Planner(size, make_mesh(text), tx, ppo_settings(c), work, offload=c.ppo.reference_offload)
    parameters = sum(math.prod(x.shape) for x in jax.tree.leaves(param_shapes(size)))
    console.print(
        f"{c.agent.model}: {parameters / 1e9:.2f} B parameters, {c.agent.dtype}, mesh {text}, prompt {work.prompt}, "
        f"response {work.response}, {work.rows} rows decoded at once, micro-batch {c.ppo.micro_rows}"
    )
    stages = [planner.update(c.ppo.micro_rows), planner.sampler(), planner.reference(c.ppo.micro_rows)]
    console.print(_table(planner, stages))
    limit = int(_MEMORY.value * 1e9 * (1 - _MARGIN))
    peak = max(planner.state + stage.bytes for stage in stages)
    largest = planner.largest_micro_rows(limit)
    fits = peak <= limit
    print(f"{'fits' if fits else 'does not fit'} in {_MEMORY.value:g} GB: {peak / 1e9:.1f} GB at the peak")
    print(f"largest micro-batch of the update: {largest} rows" if largest else "no micro-batch fits")
    record = {
        "model": c.agent.model, "parameters": parameters, "mesh": text, "memory": int(_MEMORY.value * 1e9),
        "workload": asdict(work), "micro_rows": c.ppo.micro_rows, "state": planner.state, "peak": peak, "fits": fits,
        "largest_micro_rows": largest, "stages": [asdict(stage) for stage in stages],
    }  # fmt: skip
    print(json.dumps(record), flush=True)
    return 0


def _table(planner: Planner, stages: list[Stage]) -> Table:
    table = Table("GB on each device", caption="temporaries: at most, compiled in float32")
    for name in ("stays", "own weights", "KV cache", "temporaries", "peak", "TFLOP of a call"):
        table.add_column(name, justify="right")
    for stage in stages:
        sizes = (planner.state, stage.weights, stage.cache, stage.temporaries, planner.state + stage.bytes)
        table.add_row(stage.name, *(f"{size / 1e9:.2f}" for size in sizes), f"{stage.flops / 1e12:,.0f}")
    return table


if __name__ == "__main__":
    run(main)

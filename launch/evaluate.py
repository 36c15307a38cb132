"""Repeats the held-out evaluation of a run from its last checkpoint. The run may still be going on.

python launch/evaluate.py --run=DIR [--split=valid_seen] [--repeats=2]
"""

from __future__ import annotations

from pathlib import Path

import jax
from absl import flags
from ml_collections import ConfigDict

from launch.command import parse_flags, run, speaker, start_processes
from launch.evaluation import Evaluator
from launch.warmstart import read_start
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.display import Display
from trca_jax.learner.record import read_run
from trca_jax.policy.qwen2 import param_shardings
from trca_jax.policy.replica import Replica
from trca_jax.policy.sharding import make_mesh
from trca_jax.rollout.processes import leads, share
from trca_jax.rollout.world import World, make_codec

_RUN = flags.DEFINE_string("run", None, "Folder of a run.")
_SPLIT = flags.DEFINE_string("split", None, "Another split than the run's own.")
_REPEATS = flags.DEFINE_integer("repeats", None, "Episodes a task; the run's own by default.", lower_bound=1)


def main() -> int:
    parse_flags()
    if not _RUN.value:
        raise ValueError("--run is missing: the folder of a run that launch/train.py made")
    folder = Path(_RUN.value)
    record = read_run(folder)
    config = ConfigDict(record["config"])
    config.eval.split = _SPLIT.value or config.eval.split
    config.eval.repeats = _REPEATS.value or config.eval.repeats
    start_processes(config)
    with World(config.env, slots=len(share(config.tasks * config.group_size))) as world:
        with Display(1, [f"evaluation of {folder}"], console=speaker()) as display:
            preparing = lambda done, of: display.phase(f"preparing games {done}/{of}")  # noqa: E731
            own = not (_SPLIT.value or _REPEATS.value)
            name = "evaluation" if own else f"evaluation-{config.eval.split}-{config.eval.repeats}"
            evaluator = Evaluator(config, world, preparing, name)
            display.message(f"held out  {evaluator.tasks}")
            policy = read_start(config, folder)
            if policy.sha256 != record["weights"]:
                raise ValueError(
                    f"{folder} started from weights with sha256 {record['weights'][:12]}, but {config.agent.model!r} "
                    f"has {policy.sha256[:12]} now; put back the model that the run was made with"
                )
            codec = make_codec(config.agent, policy.tokenizer)
            mesh = make_mesh(config.mesh)
            replica = Replica(policy.config, mesh)
            collector = world.collector(replica.config, codec, config.agent, config.ppo.temperature)
            start = jax.device_put(policy.params, param_shardings(policy.config, mesh))
            iteration, params = Checkpoints(folder, config.checkpoint.keep).policy(start)
            with jax.set_mesh(replica.mesh):
                evaluator.run(collector, replica(params), folder, iteration, display)
        if leads():
            evaluator.show(folder, iteration)
    return 0


if __name__ == "__main__":
    run(main)

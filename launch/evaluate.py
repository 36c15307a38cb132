"""Repeats the held-out evaluation of a run from its last checkpoint.

python launch/evaluate.py --run=DIR [--split=valid_seen] [--repeats=2]
"""

from __future__ import annotations

from pathlib import Path

from absl import flags
from ml_collections import ConfigDict

from launch.command import parse_flags, run
from launch.evaluation import Evaluator
from launch.warmstart import start_policy
from trca_jax.learner.display import Display
from trca_jax.learner.loop import Trainer
from trca_jax.learner.record import read_run
from trca_jax.rollout.world import World

_RUN = flags.DEFINE_string("run", None, "Folder of a run.")
_SPLIT = flags.DEFINE_string("split", None, "Another split than the run's own.")
_REPEATS = flags.DEFINE_integer("repeats", None, "Episodes a task; the run's own by default.", lower_bound=1)


def main() -> int:
    parse_flags()
    if not _RUN.value:
        raise ValueError("--run is missing: the folder of a run that launch/train.py made")
    folder = Path(_RUN.value)
    config = ConfigDict(read_run(folder)["config"])
    config.eval.split = _SPLIT.value or config.eval.split
    config.eval.repeats = _REPEATS.value or config.eval.repeats
    with World(config.env, slots=config.tasks * config.group_size) as world:
        with Display(1, [f"evaluation of {folder}"]) as display:
            preparing = lambda done, of: display.phase(f"preparing games {done}/{of}")  # noqa: E731
            evaluator = Evaluator(config, world, preparing)
            display.message(f"held out  {evaluator.tasks}")
            tasks = world.tasks("train", config.env.games, preparing)
            policy = start_policy(config, world, tasks, folder, display.message)
            trainer = Trainer(config, world, policy, tasks.tasks, folder)
            evaluator.run(trainer.collector, trainer.state.params, folder, trainer.iteration, display)
            trainer.close()
        evaluator.show(folder, trainer.iteration)
    return 0


if __name__ == "__main__":
    run(main)

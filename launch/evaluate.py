"""Evaluates a policy on held-out tasks: that of a run, from its last checkpoint, or a model as it is.

python launch/evaluate.py --run=DIR [--split=valid_seen] [--repeats=2]       the run may still be going on
python launch/evaluate.py --config=configs/alfworld.py:qwen2.5-1.5b --config.agent.model=FOLDER --config.workdir=DIR
python launch/evaluate.py --config=configs/alfworld.py:qwen2.5-1.5b --config.agent.model=NAME \\
    --config.agent.endpoint=URL [--config.agent.prompt=react [--config.eval.trials=3]]       ReAct, and Reflexion
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
from absl import flags
from ml_collections import ConfigDict

from launch.command import RUN, SPLIT, read_config, recorded_config, run, speaker, start_processes
from launch.evaluation import Evaluator
from launch.prompting import prompt_model
from launch.warmstart import read_start, recorded_start
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.display import Display
from trca_jax.learner.record import open_run, read_run
from trca_jax.policy.replica import Replica
from trca_jax.policy.sharding import make_mesh
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.processes import leads, share
from trca_jax.rollout.store import read_episodes
from trca_jax.rollout.world import World, make_codec

_REPEATS = flags.DEFINE_integer("repeats", None, "Episodes a task; the run's own by default.", lower_bound=1)


def main() -> int:
    play(*request())
    return 0


def request() -> tuple[ConfigDict, Path, dict | None, str]:
    """What the flags ask to evaluate: the config, the folder, the run's record (None for a model as it is), and the
    name of the evaluation's files."""
    config = read_config()
    if not RUN.value and not flags.FLAGS["config"].present:
        raise ValueError("--run is missing: the folder of a run; or give --config and --config.agent.model")
    if RUN.value:
        folder = Path(RUN.value)
        record = read_run(folder)
        config = recorded_config(record, folder)
        start_processes(config)
    else:
        prompt = f"-{config.agent.prompt}" if config.agent.endpoint else ""
        default = f"runs/{config.env.name}-{Path(config.agent.model).name}{prompt}"
        folder, record = Path(config.workdir or default), None
        if (folder / "checkpoints").exists():
            raise ValueError(f"{folder} holds a run that was trained; evaluate it with --run, or set --config.workdir")
    own = not (SPLIT.value or _REPEATS.value)
    config.eval.split = SPLIT.value or config.eval.split
    config.eval.repeats = _REPEATS.value or config.eval.repeats
    name = "evaluation" if own else f"evaluation-{config.eval.split}-{config.eval.repeats}"
    return config, folder, record, name


def play(config: ConfigDict, folder: Path, record: dict | None, name: str) -> None:
    """Plays the evaluation that was asked for, writes its files and prints its table."""
    with World(config.env, slots=len(share(config.tasks * config.group_size))) as world:
        with Display(1, [f"evaluation of {folder}"], console=speaker()) as display:
            preparing = lambda done, of: display.phase(f"preparing games {done}/{of}")  # noqa: E731
            evaluator = Evaluator(config, world, preparing, name)
            display.message(f"held out  {evaluator.tasks}")
            if config.agent.endpoint:
                iteration = 0
                prompt_model(config, folder, record is None, world, evaluator, display)
            else:
                iteration = _play_policy(config, folder, record, world, evaluator, display)
        if leads():
            evaluator.show(folder, iteration)


def _play_policy(
    config: ConfigDict, folder: Path, record: dict | None, world: World, evaluator: Evaluator, display: Display
) -> int:
    """Evaluates weights, and returns the iteration that they are of."""
    mesh = make_mesh(config.mesh)
    if record is None:
        start = read_start(config, folder, mesh)
        iteration, params = 0, start.params
        if leads():
            facts = {"evaluation": evaluator.facts(), "weights": start.sha256}
            open_run(folder, config, {**facts, "rubric": world.benchmark.library.fingerprint})
    else:
        start = recorded_start(record, folder, mesh)
        iteration, params = Checkpoints(folder, config.checkpoint.keep).policy(start.params)
    replica = Replica(start.config, mesh)
    codec = make_codec(config.agent, start.tokenizer, world.benchmark)
    collector = world.collector(replica.config, codec, config.agent, config.ppo.temperature)
    with jax.set_mesh(replica.mesh):
        evaluator.run(collector, replica(params), folder, iteration, display)
    return iteration


def evaluated() -> tuple[ConfigDict, Path, list[Episode]]:
    """The episodes that the flags ask for, played now unless they are in the folder; the config, and their file."""
    config, folder, record, name = request()
    trained = (folder / "checkpoints").exists() and Checkpoints(folder, config.checkpoint.keep).latest()
    path = folder / f"{name}-{trained or 0}.npz"
    if not (path.exists() and (record or read_run(folder)["config"] == json.loads(config.to_json()))):
        play(config, folder, record, name)
    return config, path, read_episodes(path)


if __name__ == "__main__":
    run(main)

"""What every command shares: the config flag, where compiled code is kept, and how an error is told."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags
from rich.console import Console

from configs import common
from trca_jax import credit
from trca_jax.agents.chat import Chat
from trca_jax.agents.prompts import PROMPTS
from trca_jax.learner.loop import ppo_settings
from trca_jax.policy.config import REMAT
from trca_jax.policy.sharding import ShardingRules
from trca_jax.rollout.processes import leads

console = Console(highlight=False)
# Flags that several commands have; a name can be defined once only.
RUN = flags.DEFINE_string("run", None, "Folder of a run.")
ENDPOINT = flags.DEFINE_string("endpoint", None, "OpenAI-compatible address; its key stands in TRCA_API_KEY.")
MODEL = flags.DEFINE_string("model", None, "Name of the endpoint's model.")
SPLIT = flags.DEFINE_string("split", None, "Another split of the tasks than the command takes by itself.")
OUT = flags.DEFINE_string("out", None, "Folder that receives what is written.")


def run(main: Callable[[], int]) -> None:
    """Runs a command and exits with what it returns; ValueError and OSError are told in one line, exit code 2."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
    logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR") or Path.home() / ".cache" / "trca_jax" / "xla"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    try:
        code = main()
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        code = 130
    sys.exit(code)


def parse_flags(plain: bool = False) -> list[str]:
    """Parses the command line and returns its plain arguments, which are refused unless `plain` is set.

    Raises ValueError in one line for anything that is not understood.
    """
    try:
        rest = flags.FLAGS(sys.argv)[1:]
    except flags.Error as error:
        raise ValueError(_last_line(error)) from None
    if rest and not plain:
        raise ValueError(f"argument {rest[0]!r} is not understood; a field is given as --config.name=value")
    return rest


def read_config(default: str = "configs/alfworld.py") -> ConfigDict:
    """The config that the command line asks for: --config=FILE[:PRESET] and --config.field=value.

    Raises ValueError in one line for a missing file, an unknown field or preset, and a bad value.
    """
    try:
        holder = config_flags.DEFINE_config_file("config", default, "The run; --config.field=value overrides a field.")
        parse_flags()
        start_processes(holder.value)
        check_config(holder.value)
    except (AttributeError, KeyError) as error:
        name = str(error).strip("\"'")
        raise ValueError(f"the config has no field {name!r}; see configs/common.py for all of them") from None
    except OSError as error:
        raise ValueError(f"the config file cannot be read: {_last_line(error)}") from None
    return holder.value


def recorded_config(record: Mapping, folder: Path) -> ConfigDict:
    """The config in a run's record. Raises ValueError if an older version wrote it that lacks a field of today."""
    config = ConfigDict(record["config"])
    if missing := sorted(_names(common.get_config()) - _names(config)):
        raise ValueError(
            f"{folder} was written by an older version: its config has no field {missing[0]!r} ({len(missing)} are "
            "missing); read it with the version that made it, or make the run again"
        )
    return config


def _names(c: ConfigDict, prefix: str = "") -> set[str]:
    parts = [_names(value, f"{prefix}{name}.") for name, value in c.items() if isinstance(value, ConfigDict)]
    return {f"{prefix}{name}" for name in c}.union(*parts)


def computed(c: ConfigDict) -> dict:
    """How the config wants the policy to be computed: what `load_policy` cannot read in the model's files."""
    return {"dtype": c.agent.dtype, "remat": c.agent.remat, "rules": ShardingRules(replicate=not c.strict_mesh)}


def read_chat(cache: Path | None = None) -> Chat | None:
    """The model that --endpoint and --model name, None without them. Raises ValueError for one without the other."""
    if bool(ENDPOINT.value) != bool(MODEL.value):
        raise ValueError("--endpoint and --model go together: the address, and the name of a model there")
    return Chat(ENDPOINT.value, MODEL.value, cache=cache) if ENDPOINT.value else None


def start_processes(c: ConfigDict) -> None:
    """Joins the other processes of the run if config.distributed is set: JAX finds them by what Slurm, Kubernetes, MPI
    or a TPU pod say in the environment. Comes before anything else that uses JAX."""
    if c.distributed and not jax.distributed.is_initialized():
        try:
            jax.distributed.initialize()
        except (ValueError, RuntimeError) as error:
            raise ValueError(
                f"config.distributed is set, but no other processes were found ({_last_line(error)}); start it with "
                "srun or in an indexed Kubernetes job, or leave it out"
            ) from None


def speaker() -> Console | None:
    """Where a Display speaks: nowhere in all processes but the first."""
    return None if leads() else Console(quiet=True)


def check_config(c: ConfigDict) -> None:
    """Raises ValueError naming the first field whose value cannot be used."""
    choices = {
        "method": credit.METHODS,
        "agent.prompt": PROMPTS,
        "agent.decode": ("free", "admissible"),
        "agent.remat": REMAT,
    }
    for name, known in choices.items():
        if (value := _field(c, name)) not in known:
            raise ValueError(f"config.{name} {value!r} is unknown, expected one of {', '.join(known)}")
    lowest = {
        "iterations": 0, "tasks": 1, "group_size": 1, "env.games": 0, "env.max_steps": 1, "env.workers": 0,
        "agent.max_new": 1, "ppo.max_skipped": 1, "ppo.minibatches": 1, "ppo.epochs": 1, "ppo.micro_rows": 1,
        "ppo.warmup": 0, "eval.games": 0, "eval.repeats": 1, "eval.trials": 1, "eval.every": 0, "checkpoint.every": 1,
        "checkpoint.keep": 1, "checkpoint.rollouts": 0, "warmstart.steps": 0, "seed": 0,
    }  # fmt: skip
    for name, low in lowest.items():
        if (value := _field(c, name)) < low:
            raise ValueError(f"config.{name} = {value} must be at least {low}")
    free = c.agent.decode == "free" and c.agent.prompt != "word"
    for name, asked in (("agent.endpoint", c.agent.endpoint), ("eval.trials", c.eval.trials > 1)):
        if asked and not free:
            raise ValueError(
                f"config.{name} = {_field(c, name)!r} needs answers in sentences: take a published preset, such as "
                "--config=configs/alfworld.py:qwen2.5-1.5b, with agent.prompt=instruct or react and agent.decode=free"
            )
    if "step_score" in credit.METHODS[c.method].needs and not (c.judge.endpoint and c.judge.model):
        raise ValueError(
            f"config.method {c.method!r} needs a language model that scores transitions: give "
            "--config.judge.endpoint=URL and --config.judge.model=NAME (its key stands in TRCA_API_KEY)"
        )
    if c.warmstart.steps and c.distributed:
        raise ValueError("config.warmstart.steps is set: a warm start is made in one process; use launch/warmstart.py")
    if c.seed >= 2**32:
        raise ValueError(f"config.seed = {c.seed} must be below 2**32")
    for name in ("ppo.lr", "ppo.clip_norm", "env.deadline_s"):
        if not (value := _field(c, name)) > 0:
            raise ValueError(f"config.{name} = {value} must be positive")
    if c.agent.max_new >= max(c.agent.buckets.slots):
        raise ValueError(
            f"config.agent.max_new = {c.agent.max_new} must be below the longest row, {max(c.agent.buckets.slots)} "
            "(agent.buckets.slots)"
        )
    if c.group_size == 1 and "token_values" not in credit.METHODS[c.method].needs:
        raise ValueError(f"config.group_size = 1: {c.method} compares the rollouts of a task, so it needs at least 2")
    credit.make(c.method, **c.credit[c.method])
    ppo_settings(c)


def _field(c: ConfigDict, name: str):
    for part in name.split("."):
        c = c[part]
    return c


def _last_line(error: Exception) -> str:
    """What went wrong: errors within a config file come with the text of their traceback."""
    return re.sub(r"^\w+Error: ", "", str(error).strip().splitlines()[-1].strip())

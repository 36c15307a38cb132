"""The commands of launch/ at a size that runs in seconds: within this process, or in one of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from absl import flags
from ml_collections import ConfigDict

from configs.alfworld import get_config
from launch.command import run
from trca_jax.envs.registry import make_benchmark
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.hf import write_model
from trca_jax.policy.load import load_policy
from trca_jax.policy.qwen2 import init_params
from trca_jax.policy.tokenizer import word_tokenizer

ROOT = Path(__file__).resolve().parents[1]
_VERBS = "go to open close take put move use clean heat cool examine look inventory from with in on help task scene see"
_FLAGS = frozenset("run split repeats out dtype reply endpoint model jobs budgets goal picture task".split())
SMALL = {
    "tasks": 2, "group_size": 2, "iterations": 3, "env.games": 2, "env.max_steps": 5, "eval.games": 2,
    "env.task_types": ("pick_and_place_simple", "pick_clean_then_place_in_recep"), "checkpoint.every": 1,
    "ppo.micro_rows": 2, "ppo.minibatches": 2, "ppo.lr": 3e-4, "agent.buckets.chunk": (64, 128),
    "agent.buckets.slots": (256,),
}  # fmt: skip


def write_small_model(folder: Path, hidden: int = 32, words: str = "") -> Path:
    """A model folder of one layer with random weights; words: those it knows, ALFWorld's by default."""
    tokenizer = word_tokenizer([words or make_benchmark("alfworld").vocabulary(), _VERBS])
    size = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=48, num_layers=1, num_heads=2, num_kv_heads=1,
        head_dim=16, rope_theta=1e4, remat="none",
    )  # fmt: skip
    write_model(folder, size, init_params(size, jax.random.key(0)))
    tokenizer.save_pretrained(str(folder))
    return folder


class Commands:
    """model: the folder of the start policy. cache: where all of them keep compiled code."""

    def __init__(self, model: Path, cache: Path):
        self.model, self._cache = model, cache
        self.cache_settings = {
            "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }  # fmt: skip

    def fields(self, workdir: Path, **overrides: object) -> dict[str, object]:
        """Of the config of a small run; in an override's name a double underscore stands for the point."""
        fields = {"workdir": str(workdir), "agent.model": str(self.model), **SMALL}
        return fields | {name.replace("__", "."): value for name, value in overrides.items()}

    def config(self, workdir: Path, **overrides: object) -> ConfigDict:
        """A small run, for tests that call the library and no command."""
        config = get_config()
        config.update_from_flattened_dict(self.fields(workdir, **overrides))
        return config

    def arguments(self, workdir: Path, **overrides: object) -> list[str]:
        """A small run on the command line."""
        fields = self.fields(workdir, **overrides).items()
        return ["--config=configs/alfworld.py", *(f"--config.{name}={value}" for name, value in fields)]

    def policy(self, folder: Path) -> list[np.ndarray]:
        """The parameters in the last checkpoint of a run."""
        _, params = Checkpoints(folder, 2).policy(load_policy(str(self.model)).params)
        return self.leaves(params)

    @staticmethod
    def leaves(params) -> list[np.ndarray]:
        return jax.tree.leaves(jax.device_get(params))

    def call(self, main: Callable[[], int], *arguments: str) -> int:
        """The exit code of a command called in this process."""
        for name in list(flags.FLAGS):
            if name.split(".")[0] == "config":
                delattr(flags.FLAGS, name)
            elif name in _FLAGS:
                flags.FLAGS[name].unparse()
        flags.FLAGS.unparse_flags()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
            patch.setattr(sys, "argv", ["command", *arguments])
            patch.setenv("JAX_COMPILATION_CACHE_DIR", str(self._cache))
            patch.chdir(ROOT)
            run(main)
        return end.value.code

    def start(self, script: str, *arguments: str, **options: bool) -> subprocess.Popen:
        """A command in a process of its own, its output to be read."""
        return subprocess.Popen(
            [sys.executable, f"launch/{script}", *arguments], cwd=ROOT, text=True,
            env={**os.environ, **self.cache_settings},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip

"""Writes the policy of a run's last checkpoint as a Hugging Face folder, which transformers and others load.

python launch/export_hf.py --run=DIR --out=FOLDER [--dtype=bfloat16]
"""

from __future__ import annotations

from pathlib import Path

from absl import flags
from ml_collections import ConfigDict

from launch.command import OUT, RUN, parse_flags, run
from launch.warmstart import recorded_start
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.record import read_run
from trca_jax.policy.hf import write_model
from trca_jax.policy.sharding import make_mesh

_DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16", "float16"], "Type of the written weights.")


def main() -> int:
    parse_flags()
    for flag, what in ((RUN, "the folder of a run"), (OUT, "the folder that receives the model")):
        if not flag.value:
            raise ValueError(f"--{flag.name} is missing: {what}")
    folder, out = Path(RUN.value), Path(OUT.value)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is not an empty folder; choose another --out")
    record = read_run(folder)
    config = ConfigDict(record["config"])
    start = recorded_start(record, folder, make_mesh())
    checkpoints = Checkpoints(folder, config.checkpoint.keep)
    if checkpoints.latest() is None:
        raise ValueError(f"{folder} has no checkpoint yet; let it finish {config.checkpoint.every} iterations")
    iteration, params = checkpoints.policy(start.params)
    checkpoints.close()
    write_model(out, start.config, params, _DTYPE.value, start.tokenizer)
    print(f"wrote the policy after {iteration} iterations to {out} ({_DTYPE.value})")
    return 0


if __name__ == "__main__":
    run(main)

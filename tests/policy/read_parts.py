"""One of several processes that read and write a model together; started by test_processes.py.

python read_parts.py RANK PROCESSES PORT FOLDER
"""

import sys
import tracemalloc
from pathlib import Path

import jax
import numpy as np

from trca_jax.policy import hf
from trca_jax.policy.config import read_config
from trca_jax.policy.qwen2 import param_shardings
from trca_jax.policy.sharding import make_mesh


def main(rank, processes, port, folder):
    jax.distributed.initialize(f"127.0.0.1:{port}", int(processes), int(rank))
    config = read_config(folder, remat="none")
    shardings = param_shardings(config, make_mesh("fsdp:4,tp:2"))
    read, sizes = hf._read, []

    def counted(*arguments):
        part = read(*arguments)
        sizes.append(part.nbytes)
        return part

    hf._read = counted
    tracemalloc.start()
    params = hf.read_model(folder, config, shardings)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    total = sum(x.nbytes for x in jax.tree.leaves(params))
    print(f"{sum(sizes)} {max(sizes)} {total} {peak}")

    def compare(x, sharding, expected):
        assert x.shape == expected.shape and x.sharding == sharding
        for shard in x.addressable_shards:
            np.testing.assert_array_equal(shard.data, expected[shard.index])

    jax.tree.map(compare, params, shardings, hf.read_model(folder, config))
    hf.write_model(Path(folder) / "again", config, params)


if __name__ == "__main__":
    main(*sys.argv[1:])

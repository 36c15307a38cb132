"""Two processes with four devices each read one model, every one its own parts, and write it again."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from tiny import random_params

from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.hf import write_model

ROOT = Path(__file__).resolve().parents[2]
SIZE = Qwen2Config(
    vocab_size=512, hidden_size=128, intermediate_size=512, num_layers=4, num_heads=4, num_kv_heads=2, head_dim=32,
    tie_embeddings=False, remat="none",
)  # fmt: skip


def test_each_process_reads_what_its_devices_need(tmp_path):
    write_model(tmp_path, SIZE, random_params(SIZE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "4", "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(ROOT / "tests/policy/read_parts.py"), str(rank), "2", str(port), str(tmp_path)],
            env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]  # fmt: skip
    for process in processes:
        out, err = process.communicate(timeout=1200)
        assert process.returncode == 0, err
        # The library that connects the processes writes lines of its own.
        read, largest, total, peak = map(int, re.search(r"^(\d+) (\d+) (\d+) (\d+)$", out, re.MULTILINE).groups())
        print(f"model {total:,} bytes; of its own parts {read:,}, the largest {largest:,}; peak {peak:,}")
        # Half of what is split over fsdp; what only tp splits, or nothing, is read by both.
        assert total / 2 <= read < 0.52 * total
        assert largest == 4 * SIZE.num_layers * (128 // 4) * (512 // 2)
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["config.json", "model.safetensors"]

"""Eight devices compute what one does, and hold their share alone (the runs are tests/mesh_run.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def found(commands):
    """The untied model on a mesh of all three axes, the tied one on a tp that its 2 key-value heads cannot fill."""
    runs = [
        subprocess.Popen(
            [sys.executable, "mesh_run.py", *arguments], cwd=TESTS, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, **commands.cache_settings, "PYTHONPATH": str(TESTS.parent)},
        )
        for arguments in (("untied", "data:2,fsdp:2,tp:2"), ("tied", "fsdp:2,tp:4"))
    ]  # fmt: skip
    results = {}
    for process in runs:
        out, err = process.communicate(timeout=1200)
        assert process.returncode == 0, err[-3000:]
        assert "Involuntary full rematerialization" not in err  # no activation is gathered that need not be
        results |= json.loads(out.splitlines()[-1])
    return results


@pytest.mark.parametrize("mesh", ["data:2,fsdp:2,tp:2", "fsdp:2,tp:4"])
def test_losses_gradients_scores_and_samples_are_those_of_one_device(found, mesh):
    for name, difference in found[mesh]["difference"].items():
        assert difference <= 1e-5 * max(found[mesh]["size"][name], 1), name
        assert found[mesh]["size"][name] > 0.1, name
    assert found[mesh]["tokens"]


def test_every_device_holds_its_share_of_weights_moments_and_cache(found):
    three, four = found["data:2,fsdp:2,tp:2"], found["fsdp:2,tp:4"]
    assert three["gate"] == [2, 32 // 2, 48 // 2] and four["gate"] == [2, 32 // 2, 48 // 4]
    assert three["moments_as_parameters"] and four["moments_as_parameters"]
    assert three["bytes"] < 1.05 * three["bytes_alone"] / 4 and four["bytes"] < four["bytes_alone"] / 4
    # 8 rows and 2 key-value heads: over 4 devices and tp:2; over 2 devices, where tp:4 cannot split 2 heads.
    assert three["cache"] == [2, 8 // 4, 2 // 2, 32, 8] and four["cache"] == [2, 8 // 2, 2, 32, 8]

"""The memory plan: the published sizes on four devices at the published lengths, without weights."""

import json

import pytest

from trca_jax.policy.config import preset
from trca_jax.policy.qwen2 import parameter_count

GB = 10**9


def plan(commands, *arguments):
    """What the command printed, and its last line as a record."""
    process = commands.start("plan.py", *arguments)
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err[-2000:]
    return out, json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module", params=["qwen2.5-1.5b", "qwen2.5-7b"])
def found(request, commands):
    return request.param, *plan(commands, f"--config=configs/alfworld.py:{request.param}", "--mesh=fsdp:4")


def test_what_stays_on_a_device_is_a_quarter_of_weights_moments_and_reference(found):
    """float32 weights and two moments, the reference in bfloat16; norms are float32 and few."""
    name, _, record = found
    assert (record["workload"]["prompt"], record["workload"]["response"]) == (2048, 512)
    total, _ = parameter_count(preset(name))
    assert record["parameters"] == total
    assert record["state"] == pytest.approx((3 * 4 + 2) * total / 4, rel=2e-3)


def test_the_sampler_has_its_own_copy_and_a_cache(found):
    name, _, record = found
    size, (update, sampler, reference) = preset(name), record["stages"]
    assert [stage["name"] for stage in record["stages"]] == ["update", "sampler", "reference"]
    assert sampler["weights"] == pytest.approx(2 * record["parameters"], rel=2e-3)
    rows = record["workload"]["rows"]
    assert rows == 64
    numbers = 2 * size.num_layers * size.num_kv_heads * size.head_dim * rows * (2048 + 512)
    assert sampler["cache"] == 2 * 2 * numbers / 4  # of both halves, in bfloat16
    assert update["weights"] == update["cache"] == reference["weights"] == reference["cache"] == 0


def test_logits_of_all_tokens_never_exist(found):
    """Beside the embedding and the head, gathered whole, the reference pass needs less than the logits would be."""
    name, _, record = found
    size, rows = preset(name), record["micro_rows"] / 4
    tables = (1 if size.tie_embeddings else 2) * 4 * size.vocab_size * size.hidden_size
    assert record["stages"][2]["temporaries"] - tables < 4 * rows * (2048 + 512) * size.vocab_size


def test_the_verdict_is_what_the_peak_says(found):
    _, out, record = found
    peak = max(record["state"] + s["weights"] + s["cache"] + s["temporaries"] for s in record["stages"])
    assert record["peak"] == peak and record["fits"] == (peak <= 0.95 * 80 * GB)
    assert ("fits in 80 GB" in out) == record["fits"] == True  # noqa: E712
    assert record["largest_micro_rows"] >= record["micro_rows"] and record["largest_micro_rows"] % 4 == 0


def test_a_device_too_small_is_said_plainly(commands):
    """The tiny policy: 3 x 4 bytes of training state and 4 of the reference, for 0.85 M parameters, are over 10 MB."""
    out, record = plan(commands, "--config=configs/alfworld.py", "--mesh=data:1", "--memory=0.01")
    assert record["state"] == pytest.approx(16 * record["parameters"], rel=1e-4) and record["state"] > 10_000_000
    assert not record["fits"] and record["largest_micro_rows"] == 0
    assert "does not fit in 0.01 GB" in out and "no micro-batch fits" in out


def test_a_mesh_is_needed_and_must_be_one(commands):
    for arguments, expected in (
        ([], "--mesh is missing"),
        (["--mesh=pipe:4"], "'pipe:4' is none of data:N"),
        (["--mesh=tp:4", "--config.strict_mesh=True"], "kv_heads of size 2 cannot be split over tp:4"),
        (["--mesh=tp:4", "--config.agent.remat=some"], "config.agent.remat 'some' is unknown"),
        (["--mesh=tp:4", "--config.agent.model="], "agent.model '' is neither a shipped model"),
    ):
        process = commands.start("plan.py", "--config=configs/alfworld.py:qwen2.5-0.5b", *arguments)
        out, err = process.communicate(timeout=1200)
        assert (process.returncode, out) == (2, "") and expected in err and len(err.splitlines()) == 1

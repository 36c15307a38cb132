"""What may be handed to a method: arrays of any library, one task or many, whole or in shards; and what may not."""

import dataclasses
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import numpy as np
import pytest
import vectorised
from credit_batches import batch_of

from launch.suites.credit import batch_of as large_batch
from trca_jax.credit import METHODS, CreditBatch, make

every_method = pytest.mark.parametrize("name", METHODS)
TASKS, ROLLOUTS, STEPS = 6, 8, 7


@pytest.fixture(scope="module")
def whole():
    return large_batch(TASKS * ROLLOUTS, STEPS)


@every_method
def test_numpy_versions_agree(name, whole):
    """The versions that the benchmark compares with compute the same thing."""
    np.testing.assert_allclose(make(name)(whole).advantage, getattr(vectorised, name)(whole), rtol=2e-3, atol=2e-3)


def tasks_of(whole):
    """The batch as arrays [task, rollout, ...], with ids that count from 0 in every task."""
    parts = []
    for k in range(TASKS):
        part = {n: x[k * ROLLOUTS : (k + 1) * ROLLOUTS] for n, x in vars(whole).items()}
        live = np.arange(STEPS) < part["length"][:, None]
        acted = list(dict.fromkeys(part["context"][live]))
        others = list(dict.fromkeys(part["next_context"][live]))
        ids = {name: i for i, name in enumerate(dict.fromkeys(acted + others))}
        for name in ("context", "next_context"):
            part[name] = np.array([[ids.get(c, 0) for c in row] for row in part[name]], np.int32)
        part["group"] = np.zeros(ROLLOUTS, np.int32)
        parts.append(CreditBatch(**part))
    return parts


@every_method
def test_vmap_over_tasks_equals_one_task_after_another(name, whole):
    parts = tasks_of(whole)
    method = make(name)
    stacked = jax.tree.map(lambda *x: np.stack(x), *parts)
    together = jax.vmap(method)(stacked).advantage
    for k, part in enumerate(parts):
        np.testing.assert_allclose(together[k], method(part).advantage, rtol=1e-5, atol=1e-5)
    if "token_values" not in METHODS[name].needs:  # which is whitened over the whole batch
        np.testing.assert_allclose(np.concatenate(together), method(whole).advantage, rtol=1e-3, atol=1e-3)


def test_shard_map_over_tasks_equals_one_shard_after_another():
    """In a process of its own with three virtual devices, as their number is fixed when JAX starts."""
    code = """
        import sys
        sys.path[:0] = ["tests", "tests/credit"]
        import jax, numpy as np
        from functools import partial
        from jax.sharding import PartitionSpec as P
        from test_credit_arrays import TASKS, ROLLOUTS, STEPS, large_batch, tasks_of
        from trca_jax.credit import METHODS
        assert len(jax.devices()) == 3
        parts = tasks_of(large_batch(TASKS * ROLLOUTS, STEPS))
        shards = []
        for a, b in zip(parts[::2], parts[1::2]):
            joined = {n: np.concatenate([x, getattr(b, n)]) for n, x in vars(a).items()}
            joined["group"] = np.repeat(np.arange(2, dtype=np.int32), ROLLOUTS)
            offset = ROLLOUTS * STEPS
            for n in ("context", "next_context"):
                joined[n][ROLLOUTS:] += offset
            shards.append(type(a)(**joined))
        whole = jax.tree.map(lambda *x: np.concatenate(x), *shards)
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
        for name, method in METHODS.items():
            if name == "graphgpo":  # ids of states that were only reached would leave 0..R(T+1)-1
                keep = lambda s: all((s.next_context < 2 * ROLLOUTS * (STEPS + 1)).ravel())
                assert all(map(keep, shards))
            fn = lambda batch: method.fn(batch, method.defaults).advantage
            sharded = jax.jit(jax.shard_map(fn, mesh=mesh, in_specs=P("data"), out_specs=P("data")))(whole)
            alone = np.concatenate([jax.jit(fn)(s) for s in shards])
            np.testing.assert_allclose(sharded, alone, rtol=1e-5, atol=1e-5, err_msg=name)
            print(name, "ok", flush=True)
    """
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, cwd=root, capture_output=True, text=True
    )
    assert done.stdout.split() == [word for name in METHODS for word in (name, "ok")], done.stderr[-3000:]


def test_torch_arrays_are_taken_without_a_copy_by_hand(whole):
    torch = pytest.importorskip("torch", reason="torch is not installed; this test did not run")
    tensors = CreditBatch(**{name: torch.from_numpy(np.array(x)) for name, x in vars(whole).items()})
    np.testing.assert_allclose(make("trca")(tensors).advantage, make("trca")(whole).advantage, atol=1e-6)
    with pytest.raises(ValueError, match=r"CreditBatch.outcome has shape \(2,\), expected \(R\) = \(48,\)"):
        make("grpo")(dataclasses.replace(tensors, outcome=torch.zeros(2)))


def small(**change):
    batch = batch_of(
        r_env=np.zeros((3, 2)), length=[2, 1, 2], group=[0, 0, 1], judgement=np.zeros((3, 2, 2), int),
        item_category=np.array([[0, 2]] * 3), item_mask=np.array([[1, 0], [1, 0], [1, 1]]),
        gold_logp=-np.ones((3, 3)), tool=np.zeros((3, 2), int), hindsight_logp=-np.ones((3, 2)),
        token_values=np.zeros((3, 2, 4)), token_mask=np.ones((3, 2, 4), int),
        golden_similarity=np.zeros((3, 2, 1)), redundancy=np.zeros((3, 2)),
        step_score=np.zeros((3, 2)),
    )  # fmt: skip
    return dataclasses.replace(batch, **change)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "trca",
            {"item_mask": np.array([[1, 0], [1, 1], [1, 1]])},
            "item_mask or .item_category differs inside task 0",
        ),
        ("trca", {"item_category": np.array([[0, 2], [1, 2], [0, 2]])}, "item_category differs inside task 0"),
        ("trca", {"item_category": np.array([[3, 2]] * 3)}, r"item_category holds 3, expected 0\.\.2"),
        ("trca", {"judgement": None}, r"CreditBatch.judgement has shape \(\), expected \(R, T, J\)"),
        ("graphgpo", {"next_context": np.full((3, 2), 9)}, r"next_context holds 9, expected 0\.\.8"),
        ("ppo", {"token_values": None}, "CreditBatch.token_values is None, expected an array"),
        ("ppo", {"token_values": np.zeros((3, 2, 5))}, r"token_values has shape \(3, 2, 5\), expected \(R, T, L\)"),
        ("ppo", {"token_values": np.full((3, 2, 4), np.nan)}, "token_values holds nan at a real step"),
        ("hcapo", {"hindsight_logp": np.full((3, 2), -np.inf)}, "hindsight_logp holds -inf at a real step"),
        ("igpo", {"gold_logp": np.full((3, 3), 0.5)}, "gold_logp holds 0.5 at a real step, expected log-probabilities"),
        ("igpo", {"gold_logp": np.zeros((3, 2))}, r"gold_logp has shape \(3, 2\), expected \(R, T\+1\) = \(3, 3\)"),
        ("trace", {"tool": None}, "CreditBatch.tool is None, expected an array"),
        ("stepsearch", {"redundancy": np.full((3, 2), np.nan)}, "redundancy holds nan at a real step"),
        ("prm", {"step_score": np.full((3, 2), 1.5)}, r"step_score holds 1.5 at a real step, expected -1\.\.1, or NaN"),
        ("prm", {"step_score": np.full((3, 2), -np.inf)}, "step_score holds -inf at a real step"),
    ],
)
def test_wrong_signals_name_the_field_the_value_and_the_rule(name, change, message):
    make(name)(small())
    with pytest.raises(ValueError, match=message):
        make(name)(small(**change))


def test_checks_can_be_left_out():
    """Then nothing is read on the host, and rubbish gives rubbish."""
    wrong = small(length=np.array([5, 1, 2]))
    with pytest.raises(ValueError, match=r"length holds 5, expected 0\.\.2"):
        make("grpo")(wrong)
    make("grpo", checks=False)(wrong)


def test_a_method_inside_jit_is_checked_for_shapes_alone():
    method = make("grpo")
    assert jax.jit(lambda batch: method(batch).advantage.sum())(small(length=np.array([5, 1, 2]))) == 0
    with pytest.raises(ValueError, match=r"CreditBatch\.outcome has shape"):
        jax.jit(lambda batch: method(batch).advantage)(small(outcome=np.zeros(2)))

"""Figures of an iteration, by hand and by loops, and the log that they are written to."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from trca_jax.credit.types import EVIDENCE, EXECUTION, INVALIDITY
from trca_jax.envs.base import Task
from trca_jax.learner.metrics import MetricsLog, flatten, funnel, read_metrics, rollout_metrics
from trca_jax.rollout.episode import Episode, Step

ITEMS = ("seen", "idle", "placed")
CATEGORY = (EVIDENCE, INVALIDITY, EXECUTION)


def episode(kind, won=False, failure=None, truncated=False, rewards=()):
    blank = np.zeros(0, np.int32)
    steps = [Step(blank, blank, blank, None, None, (0, 0), "", (), reward=reward) for reward in rewards]
    return Episode(Task(f"{kind} game", "made up", "", kind, None), 0, "append", won=won, failure=failure,
                   truncated=truncated, steps=steps)  # fmt: skip


def measure(episodes, *, judgement, mask, length, group, valid, foundational, breakthrough):
    """Arrays by name; the outcome is that of the episodes."""
    batch = SimpleNamespace(
        judgement=np.array(judgement), item_category=np.broadcast_to(CATEGORY, np.array(mask).shape),
        item_mask=np.array(mask), outcome=np.array([e.won for e in episodes], np.float32), length=np.array(length),
        group=np.array(group), valid=np.array(valid),
    )  # fmt: skip
    credit = SimpleNamespace(
        foundational=np.array(foundational), breakthrough=np.array(breakthrough), diagnostics={"flat": np.float32(0.25)}
    )
    return rollout_metrics(episodes, batch, credit, ITEMS)


def test_figures_by_hand():
    """Four rollouts of at most three steps: a success, two that were not, and one whose worker died."""
    none = [0, 0, 0]
    metrics = measure(
        [
            episode("put", won=True, rewards=(0, 1)),
            episode("put", truncated=True, rewards=(0.25,)),
            episode("cool", truncated=True),
            episode("cool", failure="worker died", rewards=(1,)),
        ],
        judgement=[
            [[1, 0, 0], [0, 1, 0], [1, 0, 1]],
            [[0, 1, 0], [1, 0, 1], none],  # `placed` is not bound here, so it counts nowhere
            [[0, 0, 0], none, [1, 1, 1]],  # its third step does not exist
            [[1, 1, 1], [1, 1, 1], [1, 1, 1]],  # nor does this rollout
        ],
        mask=[[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]],
        length=[3, 2, 1, 0],
        group=[0, 0, 1, 1],
        valid=[[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1]],
        foundational=[[0.5, -0.1, 0.5], [0, 0.5, 0], [0, 0, 0], [0, 0, 0]],
        breakthrough=[[0, 0, 3], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
    )
    assert metrics["success"] == pytest.approx(1 / 3)
    assert metrics["score"] == pytest.approx((1 + 0.25) / 3)
    assert metrics["all_failed_groups"] == 0.5
    assert metrics["useful"] == pytest.approx(3 / 6)
    assert metrics["useful_failed"] == pytest.approx(1 / 3)
    assert metrics["valid"] == pytest.approx(4 / 6)
    assert metrics["foundational"] == pytest.approx(1.4 / 3)
    assert metrics["breakthrough"] == pytest.approx(1.0)
    assert metrics["steps"] == pytest.approx(2.0)
    assert (metrics["failures"], metrics["truncated"]) == (1, 2)
    assert metrics["items"] == pytest.approx({"seen": 2 / 3, "idle": 2 / 3, "placed": 1 / 2})
    assert metrics["kinds"] == {"cool": 0.0, "put": 0.5}
    assert metrics["flat"] == 0.25


def loops(episodes, judgement, mask, length, group, valid):
    """The same shares, counted one by one."""
    played = [r for r, e in enumerate(episodes) if not e.failure]
    useful, useful_failed, steps, failed_steps, parsed = 0, 0, 0, 0, 0
    for r in played:
        for t in range(length[r]):
            good = any(judgement[r][t][j] and mask[r][j] and CATEGORY[j] != INVALIDITY for j in range(3))
            steps, useful, parsed = steps + 1, useful + good, parsed + bool(valid[r][t])
            if not episodes[r].won:
                failed_steps, useful_failed = failed_steps + 1, useful_failed + good
    items = {}
    for j, name in enumerate(ITEMS):
        bound = [r for r in played if mask[r][j]]
        if bound:
            items[name] = sum(any(judgement[r][t][j] for t in range(length[r])) for r in bound) / len(bound)
    groups = {group[r] for r in played}
    return {
        "success": sum(episodes[r].won for r in played) / max(len(played), 1),
        "all_failed_groups": sum(not any(episodes[r].won for r in played if group[r] == g) for g in groups)
        / max(len(groups), 1),
        "useful": useful / max(steps, 1),
        "useful_failed": useful_failed / max(failed_steps, 1),
        "valid": parsed / max(steps, 1),
        "items": items,
        "failures": len(episodes) - len(played),
    }


@pytest.mark.parametrize("seed", range(12))
def test_figures_against_loops(seed):
    rng = np.random.default_rng(seed)
    R, T = 6, 4
    failing = (0.2, 0.6, 1.0)[seed % 3]
    episodes = [
        episode("put", failure="died") if rng.random() < failing else episode("put", won=bool(rng.random() < 0.4))
        for _ in range(R)
    ]
    arrays = {
        "judgement": rng.integers(0, 2, (R, T, 3)), "mask": rng.integers(0, 2, (R, 3)),
        "length": [0 if e.failure else int(rng.integers(1, T + 1)) for e in episodes],
        "group": [0, 0, 2, 2, 5, 5], "valid": rng.integers(0, 2, (R, T)),
    }  # fmt: skip
    metrics = measure(episodes, **arrays, foundational=np.zeros((R, T)), breakthrough=np.zeros((R, T)))
    for name, value in loops(episodes, **arrays).items():
        assert metrics[name] == pytest.approx(value), name
    assert all(np.isfinite(value) for value in flatten(metrics).values())


def test_the_funnel_holds_the_execution_items_in_order():
    judge = SimpleNamespace(items=("a", "b", "c", "d"), category=(EXECUTION, EVIDENCE, EXECUTION, INVALIDITY))
    assert funnel(judge) == ["a", "c"]


def test_flatten_joins_the_names():
    assert flatten({"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": {}}) == {"a": 1, "b/c": 2, "b/d/e": 3}


def write(folder, keep, *records):
    log = MetricsLog(folder, keep)
    for kind, iteration, value in records:
        log.write({"kind": kind, "iteration": iteration, "success": value})
    log.close()
    return log


def found(folder):
    return [(r["kind"], r["iteration"], r["success"]) for r in read_metrics(folder)]


FIRST = [("eval", 0, 0.1), ("train", 0, 0.2), ("train", 1, 0.3), ("eval", 2, 0.4), ("train", 2, 0.5), ("train", 3, 0.6)]


@pytest.mark.parametrize(("keep", "kept"), [(0, 0), (1, 2), (2, 4), (3, 5), (4, 6), (9, 6)])
def test_a_resumed_log_keeps_what_the_checkpoint_knows(keep, kept, tmp_path):
    """An iteration's record belongs to the checkpoint after it, an evaluation's to the one it evaluated."""
    write(tmp_path, 0, *FIRST)
    assert found(tmp_path) == FIRST
    log = write(tmp_path, keep, ("train", keep, 0.9))
    assert found(tmp_path) == [*FIRST[:kept], ("train", keep, 0.9)]
    assert [(r["kind"], r["iteration"], r["success"]) for r in log.records] == found(tmp_path)


@pytest.mark.parametrize(
    "cut", [b"{", b'{"kind": "train", "iterat', b'{"kind": "train", "iteration": 2, "success": 0.5}']
)
def test_a_last_line_that_was_cut_off_is_dropped(cut, tmp_path):
    write(tmp_path, 0, *FIRST[:4])
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + cut)
    write(tmp_path, 2, ("train", 2, 0.7))
    assert found(tmp_path) == [*FIRST[:4], ("train", 2, 0.7)]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_folder_without_records_has_none(tmp_path):
    assert read_metrics(tmp_path / "nowhere") == []

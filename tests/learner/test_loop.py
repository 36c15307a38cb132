"""The training loop: which tasks an iteration plays, and what a dying environment does to it."""

import dataclasses
import os
import signal
from collections import Counter

import jax
import numpy as np
import pytest

from trca_jax.learner import loop
from trca_jax.learner.display import Display
from trca_jax.learner.loop import Trainer, iteration_tasks, ppo_settings
from trca_jax.policy.load import load_policy
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.world import World


@pytest.mark.parametrize(("tasks", "count"), [(10, 4), (7, 7), (3, 8), (5, 1)])
def test_every_task_comes_once_an_epoch(tasks, count):
    names = [f"task {n}" for n in range(tasks)]
    played = [name for iteration in range(2 * tasks) for name in iteration_tasks(names, count, iteration, 3)]
    epochs = [played[i : i + tasks] for i in range(0, len(played), tasks)]
    assert len(epochs) == 2 * count and all(sorted(epoch) == names for epoch in epochs)
    if tasks > 3:
        assert len({tuple(epoch) for epoch in epochs}) > 1  # another order each time


def test_the_tasks_of_an_iteration_depend_on_the_arguments_alone():
    names = [f"task {n}" for n in range(20)]
    later = iteration_tasks(names, 6, 5, 0)
    np.random.default_rng(1).permutation(9)
    np.random.seed(7)
    assert [iteration_tasks(names, 6, i, 0) for i in range(6)][5] == later
    assert iteration_tasks(names, 6, 5, 1) != later


def test_each_method_brings_the_tokens_it_is_defined_on(commands, tmp_path):
    config = commands.config(tmp_path)
    assert ppo_settings(config).tokens == "action"
    config.method = "grpo"
    assert ppo_settings(config).tokens == "response"
    config.ppo.tokens = "action"
    assert ppo_settings(config).tokens == "action"


@pytest.fixture
def world(commands, tmp_path):
    config = commands.config(tmp_path, env__workers=2)
    with World(config.env, slots=4) as world:
        yield world


def trainer(commands, world, folder, **overrides):
    config = commands.config(folder, **overrides)
    tasks = world.tasks("train", 2, lambda done, of: None)
    return Trainer(config, world, load_policy(str(commands.model)), tasks.tasks, folder)


def test_a_config_that_cannot_be_used_leaves_no_record(commands, world, tmp_path):
    for wrong in ({"ppo__clip": 2.0}, {"agent__decode": "beam"}, {"agent__prompt": "poem"}):
        with pytest.raises(ValueError, match=next(iter(wrong)).split("__")[1]):
            trainer(commands, world, tmp_path / "run", **wrong)
        assert not (tmp_path / "run").exists()


class Assassin(Display):
    """Kills the first worker in the second turn of the second iteration."""

    def __init__(self, world):
        super().__init__(3, ["test"])
        self.world, self.done, self.killed = world, 0, 0

    def turn(self, turn, live):
        if self.done == 1 and turn == 2 and not self.killed:
            self.killed = self.world.pool._workers[0].process.pid
            os.kill(self.killed, signal.SIGKILL)

    def iteration(self, metrics):
        super().iteration(metrics)
        self.done += 1


def test_a_killed_worker_costs_its_episodes_and_nothing_else(commands, world, tmp_path, monkeypatch):
    """Two workers with two slots each, so that one task loses both of its rollouts."""
    packed, pack = [], loop.pack

    def watch(episodes, **arguments):
        packed.append((episodes, pack(episodes, **arguments)))
        return packed[-1][1]

    monkeypatch.setattr(loop, "pack", watch)
    one, display = trainer(commands, world, tmp_path / "run"), Assassin(world)
    one.run(display)
    one.close()
    records = one.log.records
    assert display.killed and [r["iteration"] for r in records] == [0, 1, 2]
    assert [r["failures"] for r in records] == [0, 2, 0]
    assert all(np.isfinite(r["policy_loss"]) and r["grad_norm"] > 0 and r["valid"] == 1 for r in records)
    assert [r["steps"] for r in records] == [5, 5, 5]  # of those that could be played
    assert [len(r["kinds"]) for r in records] == [2, 1, 2]

    episodes, rows = packed[1]
    assert ["died" in (e.failure or "") for e in episodes] == [True, True, False, False]
    assert Counter(rows.segment_ids.any(axis=1).tolist()) == {True: 2, False: 2}
    steps = np.unique(rows.transition[rows.response_mask])
    assert steps.min() >= 2 * 5 and len(steps) == 10  # transitions of the third and fourth rollout
    assert len(np.unique(packed[2][1].transition[packed[2][1].response_mask])) == 20
    assert int(jax.device_get(one.state.updates)) == 6


def test_a_run_stops_where_too_many_episodes_fail_to_run(commands, world, tmp_path):
    """At the set share it goes on; past it, what was learnt is saved and the commonest reason is told."""
    one = trainer(commands, world, tmp_path / "run", env__max_failed=0.25)

    def played(*failures):
        return [Episode(None, 0, "append", failure=failure) for failure in failures]

    one._check_failures(played("status 500", None, None, None))
    with pytest.raises(
        ValueError,
        match=r"3 of 4 episodes failed .* env.max_failed = 0.25 .* commonest reason: status 500\..* the run goes on",
    ):
        one._check_failures(played("status 500", "died", "status 500", None))
    one.close()
    assert (tmp_path / "run" / "checkpoints" / "0").is_dir()


def weights(one):
    return jax.tree.leaves(jax.device_get(one.state.params))


def test_steps_that_are_not_finite_are_skipped_and_enough_of_them_stop_the_run(commands, world, tmp_path, monkeypatch):
    """Two iterations of two steps: the parameters stay, the checkpoint is named, and the run can go on from it."""
    one = trainer(commands, world, tmp_path / "run", ppo__max_skipped=4, iterations=9)
    before, plain = weights(one), one._credit
    nothing = lambda batch: dataclasses.replace(plain(batch), advantage=plain(batch).advantage * np.nan)  # noqa: E731
    monkeypatch.setattr(one, "_credit", nothing)
    with pytest.raises(
        ValueError, match=r"not finite in the last 4 steps.* are those of checkpoint 2 in .*checkpoints"
    ):
        one.run(Display(9, ["test"]))
    records = [r for r in one.log.records if r["kind"] == "train"]
    assert [r["skipped"] for r in records] == [2.0, 2.0] and records[0]["policy_loss"] is None
    for a, b in zip(weights(one), before, strict=True):
        np.testing.assert_array_equal(a, b)
    one.close()
    again = trainer(commands, world, tmp_path / "run", ppo__max_skipped=4, iterations=3)
    assert again.iteration == 2
    again.run(Display(3, ["test"]))
    assert again.log.records[-1]["skipped"] == 0 and again.log.records[-1]["grad_norm"] is not None
    again.close()


def test_a_reference_kept_on_the_host_changes_nothing(commands, world, tmp_path):
    runs = []
    for offload in (False, True):
        one = trainer(commands, world, tmp_path / str(offload), ppo__reference_offload=offload, iterations=2)
        kinds = {x.sharding.memory_kind for x in jax.tree.leaves(one._reference)}
        assert kinds == {"pinned_host" if offload else "device"}
        one.run(Display(2, ["test"]))
        runs.append((weights(one), [r["kl"] for r in one.log.records]))
        one.close()
    for a, b in zip(runs[0][0], runs[1][0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert runs[0][1] == runs[1][1]


def test_micro_rows_must_fill_the_devices_that_share_rows(commands, world, tmp_path, monkeypatch):
    mesh = loop.make_mesh("")
    monkeypatch.setattr(type(mesh), "shape", property(lambda self: {"data": 2, "fsdp": 2, "tp": 1}))
    with pytest.raises(ValueError, match=r"ppo\.micro_rows 2 must be a multiple of data x fsdp = 4"):
        trainer(commands, world, tmp_path / "run")

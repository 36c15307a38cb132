"""Checkpoints: whole or not at all, exact, and clear about what does not fit."""

import dataclasses
import errno
import logging
import os
import resource
import shutil
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny import TINY, random_params

from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.state import new_state, optimizer

TX = optimizer(lr=1e-3, warmup=2, weight_decay=0.1, clip_norm=1.0, b2=0.99)
UPDATE = jax.jit(TX.update)


def state_of(config=TINY, seed=0, updates=0):
    """A state after some updates with made-up gradients: none of its arrays is what it was at the start."""
    state = new_state(random_params(config, seed), TX)
    for n in range(updates):
        grads = random_params(config, 100 + n)
        _, opt_state = UPDATE(grads, state.opt_state, state.params)
        params = jax.tree.map(lambda p, g: p - 0.01 * g, state.params, grads)
        state = state.replace(params=params, opt_state=opt_state, updates=state.updates + 1)
    return state


def assert_equal(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for got, want in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.fixture
def checkpoints(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    yield checkpoints
    checkpoints.close()


def test_a_critic_and_its_optimizer_are_restored_too(checkpoints, tmp_path):
    saved = state_of(updates=2).replace(critic=state_of(seed=5, updates=3))
    checkpoints.save(1, saved, random_params(TINY, 9))
    again = Checkpoints(tmp_path, keep=2)
    state, _ = again.restore(state_of().replace(critic=state_of(seed=6)), random_params(TINY, 1))
    assert_equal(state, saved)
    assert_equal(again.policy(random_params(TINY))[1], saved.params)
    again.close()


def test_what_is_restored_is_what_was_saved(checkpoints, tmp_path):
    reference = random_params(TINY, 9)
    assert checkpoints.latest() is None
    checkpoints.save(3, state_of(updates=3), reference)
    checkpoints.save(3, state_of(updates=1), reference)  # the same iteration again: it is there already
    again = Checkpoints(tmp_path, keep=2)
    assert again.latest() == 3
    state, frozen = again.restore(state_of(), random_params(TINY, 1))
    assert_equal(state, state_of(updates=3))
    assert_equal(frozen, reference)
    # The optimizer goes on from where it was.
    grads = random_params(TINY, 50)
    before = state_of(updates=3)
    assert_equal(UPDATE(grads, state.opt_state, state.params), UPDATE(grads, before.opt_state, before.params))
    again.close()


def test_the_last_ones_are_kept(checkpoints, tmp_path):
    for iteration in (1, 2, 4):
        checkpoints.save(iteration, state_of(updates=iteration), random_params(TINY))
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["2", "4"]
    assert checkpoints.restore(state_of(), random_params(TINY))[0].updates == 4


def test_the_policy_alone(checkpoints):
    start = random_params(TINY, 5)
    iteration, params = checkpoints.policy(start)
    assert iteration == 0 and params is start
    checkpoints.save(2, state_of(updates=2), start)
    iteration, params = checkpoints.policy(jax.tree.map(np.zeros_like, start))
    assert iteration == 2
    assert_equal(params, state_of(updates=2).params)


OTHERS = {
    "wider": dataclasses.replace(TINY, hidden_size=64),
    "deeper": dataclasses.replace(TINY, num_layers=3),
    "more words": dataclasses.replace(TINY, vocab_size=61),
    "untied": dataclasses.replace(TINY, tie_embeddings=False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_architecture_is_refused_in_one_line(name, checkpoints, tmp_path):
    checkpoints.save(1, state_of(), random_params(TINY))
    other = OTHERS[name]
    for restore in (
        lambda: checkpoints.restore(state_of(other), random_params(other)),
        lambda: checkpoints.policy(random_params(other)),
    ):
        with pytest.raises(ValueError, match="workdir") as error:
            restore()
        assert len(str(error.value).splitlines()) == 1 and str(tmp_path) in str(error.value)
    assert_equal(checkpoints.restore(state_of(), random_params(TINY))[0], state_of())


def test_a_full_disk_is_told_and_the_last_checkpoint_stays(checkpoints, tmp_path, monkeypatch):
    free = lambda size: lambda path: shutil._ntuple_diskusage(10**9, 10**9 - size, size)  # noqa: E731
    # 17,568 numbers in each of the policy, its two moments and the reference.
    monkeypatch.setattr(shutil, "disk_usage", free(2**20 + 4 * 4 * 17_000))
    with pytest.raises(ValueError, match=r"No space left on device.*there is no earlier one\. Free some space"):
        checkpoints.save(1, state_of(updates=1), random_params(TINY))
    assert not list((tmp_path / "checkpoints").iterdir())
    monkeypatch.setattr(shutil, "disk_usage", free(2**20 + 4 * 4 * 18_000))
    checkpoints.save(1, state_of(updates=1), random_params(TINY))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoints._manager, "save", full)
    with pytest.raises(ValueError, match=r"checkpoint 2 could not be written.*the checkpoint of iteration 1 is intact"):
        checkpoints.save(2, state_of(updates=2), random_params(TINY))
    assert_equal(Checkpoints(tmp_path, 2).restore(state_of(), random_params(TINY))[0], state_of(updates=1))


@contextmanager
def files_up_to(size):
    """The system itself refuses to write longer files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # writes that the library gave up
@pytest.mark.parametrize("size", [0, 2000, 20_000])
def test_a_refused_write_leaves_nothing_that_could_be_taken_for_a_checkpoint(size, checkpoints, tmp_path):
    checkpoints.save(1, state_of(updates=1), random_params(TINY))
    # The library leaves its other failed writes to asyncio, which tells of each when the tests end.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with files_up_to(size), pytest.raises(ValueError, match=r"checkpoint 2 .* iteration 1 is intact") as error:
        checkpoints.save(2, state_of(updates=2), random_params(TINY))
    assert len(str(error.value).splitlines()) == 1
    again = Checkpoints(tmp_path, 2)
    assert again.latest() == 1
    assert_equal(again.restore(state_of(), random_params(TINY))[0], state_of(updates=1))
    again.save(2, state_of(updates=2), random_params(TINY))  # space was freed, the same command was run again
    assert_equal(Checkpoints(tmp_path, 2).restore(state_of(), random_params(TINY))[0], state_of(updates=2))


def test_a_damaged_checkpoint_is_told_in_one_line(checkpoints, tmp_path):
    checkpoints.save(1, state_of(), random_params(TINY))
    for path in (tmp_path / "checkpoints" / "1").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match="cannot be restored") as error:
        Checkpoints(tmp_path, 2).restore(state_of(), random_params(TINY))
    assert len(str(error.value).splitlines()) == 1


def test_integers_of_the_state_survive(checkpoints):
    state = state_of(updates=2).replace(updates=jnp.int32(12345))
    checkpoints.save(1, state, random_params(TINY))
    assert checkpoints.restore(state_of(), random_params(TINY))[0].updates == 12345

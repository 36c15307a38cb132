"""Checkpoints: all that the next iteration depends on, written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import jax
import orbax.checkpoint as ocp

from trca_jax.learner.state import TrainState

_MARGIN = 1 << 20  # bytes for what else a checkpoint holds, and for the metrics


class Checkpoints:
    """The numbered checkpoints of a run folder. The policy, its optimizer and the frozen start policy are arrays; the
    iteration fixes everything else, as random keys and the order of tasks are functions of it and of the seed."""

    def __init__(self, folder: Path, keep: int):
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, enable_async_checkpointing=False)
        self._folder = Path(folder).resolve() / "checkpoints"
        self._manager = ocp.CheckpointManager(
            self._folder, options=options, item_handlers=ocp.PyTreeCheckpointHandler()
        )  # fmt: skip

    def latest(self) -> int | None:
        """The number of iterations done in the last complete checkpoint."""
        return self._manager.latest_step()

    def save(self, iteration: int, state: TrainState, reference) -> None:
        """Writes the state after `iteration` iterations. Raises ValueError if the disk refuses; older ones stay."""
        if iteration == self.latest():
            return
        content = {"state": state, "reference": reference}
        try:
            # Asked first, as the library meets a full disk with hundreds of lines from its threads.
            if shutil.disk_usage(self._folder).free < sum(x.nbytes for x in jax.tree.leaves(content)) + _MARGIN:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._manager.save(iteration, args=ocp.args.PyTreeSave(content))
            self._manager.wait_until_finished()
        except (OSError, ValueError) as error:
            last = self.latest()
            kept = f"the checkpoint of iteration {last} is intact" if last is not None else "there is no earlier one"
            raise ValueError(
                f"checkpoint {iteration} could not be written to {self._folder} ({_first_line(error)}); {kept}. "
                "Free some space and run the same command again"
            ) from error

    def restore(self, state: TrainState, reference) -> tuple[TrainState, dict]:
        """The last checkpoint, in the shapes of the given state. Raises ValueError if it is damaged or has another
        architecture."""
        found = self._restore({"state": state, "reference": reference}, state.params)
        return found["state"], found["reference"]

    def policy(self, params) -> tuple[int, dict]:
        """The iterations done and the policy alone of the last checkpoint; 0 and the given one if there is none.

        params: of the start, for the shapes. Raises as `restore` does.
        """
        if not self.latest():
            return 0, params
        return self.latest(), self._restore({"state": {"params": params}}, params)["state"]["params"]

    def close(self) -> None:
        self._manager.close()

    def _restore(self, like, params):
        """The part of the last checkpoint that has the structure of `like`; its policy must have the shapes of
        `params`."""
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
        types = ocp.checkpoint_utils.construct_restore_args(like)
        try:
            saved = _shapes(self._manager.item_metadata(self.latest())["state"]["params"])
            expected = _shapes(params)
            if different := sorted(name for name, _ in saved.items() ^ expected.items()):
                name = different[0]
                raise ValueError(f"its {name} is {saved.get(name, 'absent')}, not {expected.get(name, 'absent')}")
            args = ocp.args.PyTreeRestore(like, restore_args=types, partial_restore=True)
            return self._manager.restore(self.latest(), args=args)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"the checkpoint in {self._folder} cannot be restored into this model ({_first_line(error)}); "
                "use the config of that run, or another workdir"
            ) from error


def _shapes(params) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {jax.tree_util.keystr(path, simple=True, separator="."): tuple(leaf.shape) for path, leaf in leaves}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]

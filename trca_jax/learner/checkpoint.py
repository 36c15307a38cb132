"""Checkpoints: all that the next iteration depends on, written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import jax
import orbax.checkpoint as ocp

from trca_jax.learner.state import TrainState


class Checkpoints:
    """The numbered checkpoints of a run folder. The policy, its optimizer and the frozen start policy are arrays; the
    iteration fixes everything else, as random keys and the order of tasks are functions of it and of the seed."""

    def __init__(self, folder: Path, keep: int):
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, enable_async_checkpointing=False)
        self._folder = Path(folder).resolve() / "checkpoints"
        self._manager = ocp.CheckpointManager(self._folder, options=options)

    def latest(self) -> int | None:
        """The number of iterations done in the last complete checkpoint."""
        return self._manager.latest_step()

    def save(self, iteration: int, state: TrainState, reference) -> None:
        """Writes the state after `iteration` iterations. Raises ValueError if the disk refuses; older ones stay."""
        if iteration == self.latest():
            return
        try:
            self._manager.save(iteration, args=ocp.args.StandardSave({"state": state, "reference": reference}))
            self._manager.wait_until_finished()
        except (OSError, ValueError) as error:
            last = self.latest()
            kept = f"the checkpoint of iteration {last} is intact" if last is not None else "there is no earlier one"
            raise ValueError(
                f"checkpoint {iteration} could not be written to {self._folder} ({_first_line(error)}); {kept}. "
                "Free some space and run the same command again"
            ) from error

    def restore(self, state: TrainState, reference) -> tuple[TrainState, dict]:
        """The last checkpoint, in the shapes of the given state. Raises ValueError if it has another architecture."""
        shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, {"state": state, "reference": reference})
        found = self._restore(shapes, ocp.args.StandardRestore(shapes))
        return found["state"], found["reference"]

    def policy(self, params) -> tuple[int, dict]:
        """The iterations done and the policy alone of the last checkpoint; 0 and the given one if there is none.

        params: of the start, for the shapes. Raises ValueError if the checkpoint has another architecture.
        """
        if not self.latest():
            return 0, params
        shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, {"state": {"params": params}})
        types = ocp.checkpoint_utils.construct_restore_args(shapes)
        found = self._restore(shapes, ocp.args.PyTreeRestore(shapes, restore_args=types, partial_restore=True))
        return self.latest(), found["state"]["params"]

    def close(self) -> None:
        self._manager.close()

    def _restore(self, shapes, args):
        try:
            found = self._manager.restore(self.latest(), args=args)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"the checkpoint in {self._folder} cannot be restored into this model ({_first_line(error)}); "
                "use the config of that run, or another workdir"
            ) from error
        wrong = [
            f"{jax.tree_util.keystr(path)} {got.shape}, expected {want.shape}"
            for (path, want), got in zip(
                jax.tree_util.tree_leaves_with_path(shapes), jax.tree.leaves(found), strict=True
            )
            if got.shape != want.shape
        ]
        if wrong:
            raise ValueError(f"the checkpoint in {self._folder} is of another model: {wrong[0]}; use another workdir")
        return found


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]

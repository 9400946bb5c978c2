"""Writes checkpoints, removes older ones, and restores every value of the newest."""

import tempfile

import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files
from electra_tf.core import storage
from electra_tf.core.errors import UserError, tensorflow_reason
from electra_tf.core.storage import Path


class CheckpointManager:
    """A directory of checkpoints in which one is removed only after a newer one is whole."""

    def __init__(self, checkpoint: tf.train.Checkpoint, directory: Path, *, keep: int,
                 is_chief: bool = True):
        """Takes a training state and the directory of its checkpoints.

        Keeps the newest `keep` checkpoints, or all if it is 0. Workers that aren't the chief save
        into a directory that `close` removes, but restore what the chief saved.
        """
        checkpoint.save_counter  # noqa: B018  Made at first use; checkpoints hold it.
        self._checkpoint, self._restore_from = checkpoint, directory
        self._keep = keep if is_chief else 1
        self._newest: int | None = None
        self._scratch = None if is_chief else tempfile.TemporaryDirectory(prefix="electra-worker-")
        self.directory = directory if is_chief else storage.path(self._scratch.name)

    def close(self) -> None:
        """Removes what a worker that isn't the chief saved."""
        if self._scratch is not None:
            self._scratch.cleanup()

    def save(self, step: int) -> str | None:
        """Writes `ckpt-<step>` and returns its path; None if it is the newest one already.

        Raises `UserError` if the directory can't be written; earlier checkpoints are intact.
        """
        if step == self._newest:
            return None

        # The checkpoint counts once it is sealed; what a failure leaves is removed.
        path = checkpoint_files.prefix(self.directory, step)
        try:
            checkpoint_files.remove(self.directory, {step})  # What a killed process left of it.
            self._checkpoint.write(path)
            checkpoint_files.seal(self.directory, step)
        except (tf.errors.OpError, OSError, UserError) as error:
            checkpoint_files.remove(self.directory, {step})
            last = ("the start" if self._newest is None
                    else checkpoint_files.prefix(self._restore_from, self._newest))
            raise UserError(
                f"the checkpoint of step {step} can't be written to {self.directory}: "
                f"{tensorflow_reason(error)}. Free space or make the directory writable, then run "
                f"the same command without --restart, which continues from {last}.") from error

        # Only now are older ones removed.
        self._newest = step
        checkpoint_files.retain(self.directory, step, self._keep)
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the newest whole checkpoint and returns its path; None before the first one.

        Raises `UserError` if all are damaged, or the newest whole one doesn't fit this run.
        """
        step = checkpoint_files.newest_step(self._restore_from)
        if step is None:
            return None
        path = checkpoint_files.prefix(self._restore_from, step)
        try:
            self._checkpoint.restore(path).assert_consumed()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise UserError(f"the checkpoint {path} doesn't match this run: "
                            f"{tensorflow_reason(error)}") from error
        self._newest = step
        if self.directory == self._restore_from:  # A killed process may not have come to it.
            checkpoint_files.retain(self.directory, step, self._keep)
        return path

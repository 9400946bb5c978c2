"""When checkpoints are written, which are kept, and strict restoring."""

import re
import tempfile

import tensorflow as tf

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path


class CheckpointManager:
    """Saves at multiples of an interval; restores every value or refuses.

    A checkpoint is removed only after a newer one is whole.
    """

    def __init__(self, checkpoint: tf.train.Checkpoint, directory: Path, *, interval: int,
                 keep: int, is_chief: bool = True):
        """Takes a training state and the directory of its checkpoints.

        Keeps `keep` of them, or all if it is 0; `interval` is in steps. Workers that aren't the
        chief save into a directory that `close` removes, but restore what the chief saved.
        """
        checkpoint.save_counter  # noqa: B018  Made at first use; checkpoints hold it.
        self.checkpoint, self._restore_from = checkpoint, directory
        self._interval, self._keep = interval, keep if is_chief else 1
        self._newest: int | None = None
        self._scratch = None if is_chief else tempfile.TemporaryDirectory(prefix="electra-worker-")
        self.directory = directory if is_chief else storage.path(self._scratch.name)

    def close(self) -> None:
        """Removes what a worker that isn't the chief saved."""
        if self._scratch is not None:
            self._scratch.cleanup()

    def save(self, checkpoint_number: int, check_interval: bool = True) -> str | None:
        """Writes `ckpt-<step>` if the step is due (or `check_interval` is off) and not there.

        Returns its path, or None if nothing was written. If the directory can't be written, raises
        `UserError`; earlier checkpoints are intact.
        """
        step = int(checkpoint_number)
        if step == self._newest or (check_interval and step % self._interval):
            return None
        path = checkpoints.prefix(self.directory, step)
        try:
            checkpoints.remove(self.directory, {step})  # What a killed process left of it.
            self.checkpoint.write(path)
            checkpoints.seal(self.directory, step)
        except (tf.errors.OpError, OSError, UserError) as error:
            checkpoints.remove(self.directory, {step})
            last = ("the start" if self._newest is None
                    else checkpoints.prefix(self._restore_from, self._newest))
            raise UserError(
                f"the checkpoint of step {step} can't be written to {self.directory}: "
                f"{reason(error)}. Make room or make it writable and run the same command again; "
                f"it continues from {last}.") from error
        self._newest = step
        self._remove_older()
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the newest whole checkpoint and returns its path; None if there was never one.

        Raises `UserError` if none is whole any more, or it doesn't fit this run.
        """
        step = checkpoints.newest(self._restore_from)
        if step is None:
            return None
        path = checkpoints.prefix(self._restore_from, step)
        try:
            self.checkpoint.restore(path).assert_consumed()
        except (AssertionError, ValueError, tf.errors.OpError) as error:
            raise UserError(f"the checkpoint {path} doesn't fit this run: {reason(error)}"
                            ) from error
        self._newest = step
        return path

    def _remove_older(self) -> None:
        """Keeps the newest up to the one just saved; what is newer is damaged, and stays."""
        if self._keep:
            kept = [step for step in checkpoints.finished(self.directory) if step <= self._newest]
            checkpoints.remove(self.directory, {
                step for step in checkpoints.steps(self.directory)
                if step < self._newest and step not in kept[:self._keep]})


def reason(error: Exception) -> str:
    """Returns the message on one line, without the place in TensorFlow's graph."""
    text = str(error).removeprefix("Graph execution error:").split("[Op:")[0]
    return " ".join(re.sub(r"\{\{.*?\}\}", "", text).split())[:200]

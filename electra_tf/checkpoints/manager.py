"""When checkpoints are written, which are kept, and strict restoring."""

import re
import sys
import tempfile

import tensorflow as tf

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path


class CheckpointManager:
    """Saves at multiples of an interval; restores every value or refuses.

    Nothing is removed before something newer is whole.
    """

    def __init__(self, checkpoint: tf.train.Checkpoint, directory: Path, *, interval: int,
                 keep: int, restore_from: Path | None = None):
        """Takes what to save, and where.

        Args:
            checkpoint: the training state.
            directory: of the run's checkpoints.
            interval: steps between checkpoints.
            keep: how many to keep; 0 for all.
            restore_from: directory to restore from, if not from `directory`.
        """
        checkpoint.save_counter  # noqa: B018  Made at first use; checkpoints hold it.
        self.checkpoint, self.directory = checkpoint, directory
        self.checkpoint_interval, self._keep = interval, keep
        self._restore_from = restore_from
        self._newest: int | None = None
        self._scratch: tempfile.TemporaryDirectory | None = None

    def close(self) -> None:
        """Removes what a worker that isn't the chief saved for no one."""
        if self._scratch is not None:
            self._scratch.cleanup()

    def save(self, checkpoint_number: int, check_interval: bool = True) -> str | None:
        """Writes `ckpt-<step>` if the step is due (or `check_interval` is off) and not there.

        Returns:
            Its path, or None if nothing was written.

        Raises:
            UserError: the directory can't be written; earlier checkpoints are intact.
        """
        step = int(checkpoint_number)
        if step == self._newest or (check_interval and step % self.checkpoint_interval):
            return None
        path = checkpoints.prefix(self.directory, step)
        try:
            checkpoints.break_seal(self.directory, step)
            self.checkpoint.write(path)
            checkpoints.seal(self.directory, step)
        except (tf.errors.OpError, OSError, UserError) as error:
            checkpoints.remove(self.directory, {step})
            raise UserError(
                f"the checkpoint of step {step} can't be written to {self.directory}: "
                f"{_reason(error)}. "
                "Make room or make it writable and run the same command again; it continues from "
                f"{self._last_path()}.") from error
        self._newest = step
        self._remove_older()
        return path

    def restore_or_initialize(self) -> str | None:
        """Restores the newest whole checkpoint and says if newer ones are damaged.

        Returns:
            Its path, or None if none was ever finished.

        Raises:
            UserError: none is whole any more, or it doesn't fit this run.
        """
        found = checkpoints.newest(self._restore_from or self.directory)
        if found is None:
            return None
        if found.note and self._restore_from is None:
            print(f"note: {found.note}", file=sys.stderr, flush=True)
        restore(self.checkpoint, found.prefix)
        self._newest = found.step
        return found.prefix

    def _remove_older(self) -> None:
        """Keeps the newest up to the one just saved; what is newer is damaged, and stays."""
        if self._keep:
            kept = [step for step in checkpoints.finished(self.directory) if step <= self._newest]
            checkpoints.remove(self.directory, {
                step for step in checkpoints.steps(self.directory)
                if step < self._newest and step not in kept[:self._keep]})

    def _last_path(self) -> str:
        if self._newest is None:
            return "the start"
        return checkpoints.prefix(self._restore_from or self.directory, self._newest)


def training_manager(checkpoint: tf.train.Checkpoint, directory: Path, *, interval: int,
                     keep: int, is_chief: bool) -> CheckpointManager:
    """Returns the manager of a run.

    Args:
        checkpoint: what to save.
        directory: of the run's checkpoints.
        interval: steps between checkpoints.
        keep: how many to keep; 0 for all.
        is_chief: other workers have to take part in saving, into a directory of no interest,
            but restore what the chief saved.
    """
    if is_chief:
        return CheckpointManager(checkpoint, directory, interval=interval, keep=keep)
    scratch = tempfile.TemporaryDirectory(prefix="electra-worker-")
    manager = CheckpointManager(checkpoint, storage.path(scratch.name), interval=interval, keep=1,
                                restore_from=directory)
    manager._scratch = scratch
    return manager


def restore(checkpoint: tf.train.Checkpoint, path: str) -> None:
    """Restores a training state; every value on both sides must match."""
    try:
        with checkpoints.found_by_tensorflow(path) as readable:
            checkpoint.restore(readable).assert_consumed()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise UserError(
            f"the checkpoint {path} doesn't fit this run: {_reason(error)}") from error


def restore_weights(model: tf.Module, step: tf.Variable, directory: Path) -> None:
    """Restores the newest whole checkpoint's weights and step, without the optimizer's slots.

    Raises:
        UserError: there is no checkpoint, or it lacks a weight of the model.
    """
    found = checkpoints.newest(directory)
    if found is None:
        raise UserError(f"{directory} holds no checkpoint yet; train first (--mode=train) or name "
                        "the --model_dir of a run that has one.")
    if found.note:
        print(f"note: {found.note}", file=sys.stderr, flush=True)
    try:
        with checkpoints.found_by_tensorflow(found.prefix) as path:
            status = tf.train.Checkpoint(model=model, step=step).restore(path)
            status.assert_existing_objects_matched().expect_partial()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise UserError(
            f"the checkpoint {found.prefix} doesn't fit this model: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Returns the message on one line, without the place in TensorFlow's graph."""
    text = re.sub(r"\{\{.*?\}\}", "", str(error).split("[Op:")[0])
    return " ".join(text.split())[:200]

"""When checkpoints are written, which are kept, and strict restoring."""

import re
import shutil
import tempfile

import tensorflow as tf

from electra_tf import storage
from electra_tf.command_line import UserError
from electra_tf.storage import Path


class CheckpointManager(tf.train.CheckpointManager):
    """Saves at multiples of an interval; restores every value or refuses.

    TensorFlow writes the values, then the index, then renames the file `checkpoint` that names
    them, so a checkpoint that can be found is complete. The base class would count its interval
    from wherever a run happened to start.
    """

    def save(self, checkpoint_number=None, check_interval: bool = True,
             options: tf.train.CheckpointOptions | None = None) -> str | None:
        """Writes `ckpt-<step>` if the step is due (or `check_interval` is off) and not there.

        Returns:
            Its path, or None if nothing was written.

        Raises:
            UserError: the directory can't be written; earlier checkpoints are intact.
        """
        step = int(checkpoint_number)
        saved = self.latest_checkpoint
        if saved is not None and step_of(saved) == step:
            return None
        if check_interval and step % self.checkpoint_interval:
            return None
        try:
            return super().save(step, check_interval=False, options=options)
        except (tf.errors.OpError, OSError) as error:
            remove_unfinished(storage.path(self.directory))
            raise UserError(
                f"the checkpoint of step {step} can't be written to {self.directory}: "
                f"{_reason(error)}. "
                "Make room or make it writable and run the same command again; it continues from "
                f"{saved or 'the start'}.") from error

    restore_directory: str = ""
    """Where to restore from, if not from where this manager saves."""

    def restore_or_initialize(self) -> str | None:
        """Restores the newest checkpoint; None if there is none."""
        newest = tf.train.latest_checkpoint(self.restore_directory or self.directory)
        if newest is not None:
            restore(self.checkpoint, newest)
        return newest


def training_manager(checkpoint: tf.train.Checkpoint, step: tf.Variable, directory: Path, *,
                     interval: int, keep: int, is_chief: bool) -> CheckpointManager:
    """Returns the manager of a run, after clearing away what a killed process left half-written.

    Args:
        checkpoint: what to save.
        step: its step variable.
        directory: of the run's checkpoints.
        interval: steps between checkpoints.
        keep: how many to keep; 0 for all.
        is_chief: other workers have to take part in saving, into a directory of no interest,
            but restore what the chief saved.
    """
    if is_chief:
        remove_unfinished(directory)
    own = directory if is_chief else storage.path(tempfile.mkdtemp(prefix="electra-worker-"))
    manager = CheckpointManager(
        checkpoint, str(own), max_to_keep=keep or None, step_counter=step,
        checkpoint_interval=interval)
    manager.restore_directory = str(directory)
    return manager


def restore(checkpoint: tf.train.Checkpoint, path: str) -> None:
    """Restores a training state; every value on both sides must match."""
    try:
        checkpoint.restore(path).assert_consumed()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise UserError(
            f"the checkpoint {path} doesn't fit this run: {_reason(error)}") from error


def restore_weights(model: tf.Module, step: tf.Variable, directory: Path) -> None:
    """Restores the newest checkpoint's weights and step, without the optimizer's slots.

    Raises:
        UserError: there is no checkpoint, or it lacks a weight of the model.
    """
    newest = tf.train.latest_checkpoint(str(directory))
    if newest is None:
        raise UserError(f"{directory} holds no checkpoint yet; train first (--mode=train) or name "
                        "the --model_dir of a run that has one.")
    try:
        status = tf.train.Checkpoint(model=model, step=step).restore(newest)
        status.assert_existing_objects_matched().expect_partial()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        raise UserError(
            f"the checkpoint {newest} doesn't fit this model: {_reason(error)}") from error


def remove_unfinished(directory: Path) -> None:
    """Deletes files of checkpoints that the directory's `checkpoint` file doesn't name."""
    state = tf.train.get_checkpoint_state(str(directory))
    known = {storage.path(path).name for path in state.all_model_checkpoint_paths} if state else set()
    for path in directory.glob("ckpt-*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name.split(".")[0] not in known:
            path.unlink()


def step_of(path: str) -> int:
    """Returns the step in a checkpoint's name, `.../ckpt-<step>`."""
    return int(path.rsplit("-", maxsplit=1)[-1])


def _reason(error: Exception) -> str:
    """Returns the message on one line, without the place in TensorFlow's graph."""
    text = re.sub(r"\{\{.*?\}\}", "", str(error).split("[Op:")[0])
    return " ".join(text.split())[:200]

"""A run's directory with a checkpoint of the tiny networks, as if pre-training had left it."""

from pathlib import Path

import tensorflow as tf

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.core import storage
from electra_tf.training.step import TrainState
from tests.support import tiny_records, tiny_run


def write(directory: Path, **changes) -> TrainState:
    """Writes a checkpoint of step 7 and the run's settings; returns what was saved."""
    tiny_records.write(directory / "records")
    run = tiny_run.run_on(directory / "records", directory,
                          runtime__distribution_strategy="one_device", **changes)
    state = tiny_run.state_of(run)
    for number, variable in enumerate(state.model.trainable_variables):
        variable.assign_add(tf.fill(variable.shape, 0.001 * (number % 5)))
    state.step.assign(7)
    run_directory.open_run_dir(directory, run.identity)
    run.vocabulary.save(directory / run_directory.VOCABULARY_FILE)
    checkpoint = tf.train.Checkpoint(model=state.model, optimizer=state.optimizer, step=state.step)
    CheckpointManager(checkpoint, storage.path(directory) / run_directory.CHECKPOINTS,
                      keep=1).save(7)
    return state

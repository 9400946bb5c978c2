"""A loss that isn't finite stops the run, names the steps and leaves the last checkpoint."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.platform.errors import UserError
from electra_tf.pretraining import training_run
from tests import tiny_records, tiny_run


@pytest.mark.parametrize("steps_per_loop", [1, 100])
def test_the_steps_are_named_and_the_last_checkpoint_is_good(tmp_path, monkeypatch,
                                                             steps_per_loop):
    tiny_records.write(tmp_path / "records")
    run = tiny_run.run_on(tmp_path / "records", tmp_path / "model", model__num_layers=1,
                          training__num_train_steps=12, runtime__save_checkpoints_steps=4,
                          runtime__log_every_steps=4, runtime__steps_per_loop=steps_per_loop)
    compute = type(run.objective).compute

    def poisoned(self, model, inputs, randomness, *, training):
        outcome = compute(self, model, inputs, randomness, training=training)
        factor = tf.where((randomness.step == 5) | (randomness.step == 6), np.nan, 1.0)
        sums = {name: value * factor for name, value in outcome.loss_sums.items()}
        return outcome._replace(loss_sums=sums)

    monkeypatch.setattr(type(run.objective), "compute", poisoned)
    with pytest.raises(UserError, match="loss is not finite at step 6, 7. The last checkpoint"):
        training_run.train(run)
    newest = tf.train.latest_checkpoint(str(tmp_path / "model" / "checkpoints"))
    assert newest.endswith("ckpt-4")
    reader = tf.train.load_checkpoint(newest)
    for name in reader.get_variable_to_shape_map():
        if name != "_CHECKPOINTABLE_OBJECT_GRAPH":
            assert np.isfinite(reader.get_tensor(name)).all(), name

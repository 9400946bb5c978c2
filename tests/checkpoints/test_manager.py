import os

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.manager import CheckpointManager, restore_weights
from electra_tf.platform.errors import UserError


class Model(tf.Module):
    def __init__(self, size=3):
        super().__init__()
        self.kernel = tf.Variable(tf.zeros([size]))


def create(directory, keep=2, interval=5, size=3):
    model, step = Model(size), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, step=step)
    manager = CheckpointManager(checkpoint, directory, interval=interval, keep=keep, is_chief=True)
    return model, step, manager


def train(model, step, manager, until):
    while int(step) < until:
        step.assign_add(1)
        model.kernel.assign_add([1.0, 1.0, 1.0])
        manager.save(checkpoint_number=step.numpy())


def names(directory):
    return sorted(path.name for path in directory.glob("ckpt-*.index"))


def test_checkpoints_are_written_at_multiples_wherever_a_run_starts(tmp_path):
    train(*create(tmp_path, keep=0), until=7)
    model, step, manager = create(tmp_path, keep=0)
    manager.restore_or_initialize()
    assert int(step) == 5
    step.assign(8)
    train(model, step, manager, until=16)
    assert names(tmp_path) == ["ckpt-10.index", "ckpt-15.index", "ckpt-5.index"]


def test_restoring_brings_values_back(tmp_path):
    train(*create(tmp_path), until=10)
    model, step, manager = create(tmp_path)
    assert manager.restore_or_initialize().endswith("ckpt-10")
    np.testing.assert_array_equal(model.kernel, [10.0, 10.0, 10.0])
    weights, saved_step = Model(), tf.Variable(0, dtype=tf.int64)
    restore_weights(weights, saved_step, tmp_path)
    np.testing.assert_array_equal(weights.kernel, [10.0, 10.0, 10.0])
    assert int(saved_step) == 10


def test_another_worker_restores_the_chiefs_and_leaves_nothing(tmp_path):
    train(*create(tmp_path), until=10)
    model, step = Model(), tf.Variable(0, dtype=tf.int64)
    manager = CheckpointManager(tf.train.Checkpoint(model=model, step=step), tmp_path, interval=5,
                                keep=0, is_chief=False)
    assert manager.restore_or_initialize().endswith("ckpt-10") and int(step) == 10
    train(model, step, manager, until=20)
    assert names(manager.directory) == ["ckpt-20.index"]
    assert names(tmp_path) == ["ckpt-10.index", "ckpt-5.index"]
    manager.close()
    assert not manager.directory.exists()


def test_another_shape_is_refused(tmp_path):
    train(*create(tmp_path), until=5)
    _, _, manager = create(tmp_path, size=4)
    with pytest.raises(UserError, match="ckpt-5 doesn't fit this run") as error:
        manager.restore_or_initialize()
    assert "\n" not in str(error.value)


def test_a_missing_weight_is_refused(tmp_path):
    train(*create(tmp_path), until=5)
    model = Model()
    model.extra = tf.Variable(1.0)
    with pytest.raises(UserError, match="doesn't fit this run"):
        restore_weights(model, tf.Variable(0, dtype=tf.int64), tmp_path)


def test_what_a_killed_process_left_goes_when_something_newer_is_whole(tmp_path):
    train(*create(tmp_path), until=5)
    (tmp_path / "ckpt-10_temp").mkdir()
    (tmp_path / "ckpt-10_temp" / "part-00000-of-00001.data-00000-of-00001").write_text("")
    (tmp_path / "ckpt-10.data-00000-of-00001").write_text("")
    model, step, manager = create(tmp_path, keep=1)
    assert manager.restore_or_initialize().endswith("ckpt-5")
    train(model, step, manager, until=15)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint", "ckpt-15.data-00000-of-00001", "ckpt-15.index", "ckpt-15.json"]


def test_a_disk_that_is_full_is_one_line_and_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    model, step, manager = create(tmp_path)
    train(model, step, manager, until=5)

    def fail(*_arguments, **_options):
        (tmp_path / "ckpt-10_temp").mkdir()
        raise tf.errors.ResourceExhaustedError(
            None, None, "{{function_node __wrapped__SaveV2_device_/CPU:0}} No space left on device")

    monkeypatch.setattr(manager.checkpoint, "write", fail)
    with pytest.raises(UserError) as error:
        train(model, step, manager, until=10)
    assert "step 10 can't be written" in str(error.value)
    assert "No space left on device" in str(error.value)
    assert "function_node" not in str(error.value)
    assert f"continues from {os.path.join(tmp_path, 'ckpt-5')}" in str(error.value)
    assert not (tmp_path / "ckpt-10_temp").exists()

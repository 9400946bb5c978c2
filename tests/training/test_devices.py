"""The memory of what is created on devices."""

import pytest
import tensorflow as tf

from electra_tf.training.devices import temporary_variables

STRATEGIES = {
    "one device": lambda: tf.distribute.OneDeviceStrategy("CPU:0"),
    "mirrored": lambda: tf.distribute.MirroredStrategy(["CPU:0"])}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_temporary_variables_are_empty_after_the_block(strategy):
    strategy = STRATEGIES[strategy]()
    kept = tf.Variable(tf.ones([3]))
    with temporary_variables(), strategy.scope():
        freed = tf.Variable(tf.ones([2, 5]))
        strategy.run(lambda: freed.assign_add(tf.ones([2, 5])))
        assert freed.numpy().sum() == 20.0
    (buffer,) = strategy.experimental_local_results(freed)
    value = tf.raw_ops.ReadVariableOp(resource=buffer.handle, dtype=tf.float32)
    assert value.shape == [0]
    assert kept.numpy().tolist() == [1.0] * 3

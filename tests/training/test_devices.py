"""The memory of what is created on devices, and how they read batches."""

import pytest
import tensorflow as tf

from electra_tf.training.devices import distributed, temporary_variables

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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_cpu_reads_a_data_set_itself_without_the_autotuner_of_a_buffer(strategy):
    dataset = tf.data.Dataset.range(3)
    assert distributed(STRATEGIES[strategy](), lambda context: dataset) is dataset


def test_two_devices_read_their_shares():
    strategy, contexts = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), []

    def batches(context):
        contexts.append((context.num_input_pipelines, context.num_replicas_in_sync))
        return tf.data.Dataset.range(4)

    read = [[int(value) for value in strategy.experimental_local_results(element)]
            for element in distributed(strategy, batches)]
    assert (read, contexts) == ([[0, 1], [2, 3]], [(1, 2)])

"""NumPy's words and shuffles are TensorFlow's."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.stablehlo import philox


@pytest.mark.parametrize(("key", "counter"), [
    (0, (0, 0)), (2**64 - 1, (7, 2**63)), (0x0123456789ABCDEF, (2**64 - 2, 5))])
def test_words_are_tensorflows(key, counter):
    expected = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[21], key=tf.constant([key], tf.uint64), counter=tf.constant(counter, tf.uint64),
        alg=1, dtype=tf.uint32)
    np.testing.assert_array_equal(philox.words(key, counter, 21), expected)


@pytest.mark.parametrize("size", [0, 1, 2, 20, 5000])
@pytest.mark.parametrize("seed", [(0, 0), (3, 17), (2**62 - 1, 131072)])
def test_shuffles_are_tensorflows(size, seed):
    expected = tf.random.experimental.stateless_shuffle(
        tf.range(size, dtype=tf.int64), seed=tf.constant(seed, tf.int64))
    assert philox.shuffled(range(size), seed) == expected.numpy().tolist()

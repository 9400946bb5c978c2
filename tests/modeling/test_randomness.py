import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import randomness as randomness_module
from electra_tf.modeling.randomness import Randomness, dropout


def place(step=3, first_example=0, seed=7, scope=""):
    return Randomness(seed=seed, step=tf.constant(step, tf.int64), scope=scope,
                      first_example=tf.constant(first_example, tf.int64))


def test_words_are_philox_4x32_10(monkeypatch):
    # Known answer of the authors' Random123 test vectors for an all-zero key and counter.
    monkeypatch.setattr(randomness_module, "stream_key", lambda seed, stream: 0)
    bits = place(step=0).bits("any", 1, 4).numpy().view(np.uint32)
    assert [f"{word:08x}" for word in bits[0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize("words", [1, 6, 64])
def test_an_examples_bits_dont_depend_on_the_rows_around_it(words):
    whole = place().bits("stream", 8, words)
    part = place(first_example=5).bits("stream", 2, words)
    np.testing.assert_array_equal(part, whole[5:7])


def test_step_stream_seed_and_scope_each_change_the_bits():
    base = place().bits("stream", 2, 64).numpy()
    others = [
        place(step=4).bits("stream", 2, 64), place(seed=8).bits("stream", 2, 64),
        place().bits("other", 2, 64), place().within("part").bits("stream", 2, 64)]
    for other in others:
        # 128 independent words agree by chance with probability below 1e-7.
        assert np.mean(base == other.numpy()) == 0.0


def test_xla_draws_the_same_bits():
    compiled = tf.function(
        lambda step, first: dataclasses.replace(place(), step=step, first_example=first)
        .bits("stream", 4, 100), jit_compile=True)
    np.testing.assert_array_equal(
        compiled(tf.constant(3, tf.int64), tf.constant(5, tf.int64)),
        place(first_example=5).bits("stream", 4, 100))


def test_uniforms_are_uniform_and_below_one():
    values = place().uniform("stream", 64, 4096).numpy()
    assert values.dtype == np.float32
    assert values.min() >= 0.0 and values.max() < 1.0
    counts = np.histogram(values, bins=64, range=(0.0, 1.0))[0]
    expected = values.size / 64
    # Chi-square with 63 degrees of freedom exceeds 126 with probability 4e-6.
    assert np.sum((counts - expected) ** 2 / expected) < 126


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_zeroes_at_its_rate_and_keeps_the_mean(rate, dtype):
    x = tf.ones([16, 50, 100], dtype)
    y = tf.cast(dropout(x, rate, place(), "stream"), tf.float32).numpy()
    dropped = np.mean(y == 0.0)
    deviation = math.sqrt(rate * (1 - rate) / y.size)
    assert abs(dropped - rate) < 5 * deviation + 2**-16
    precision = 0.0 if dtype == tf.float32 else 0.004
    np.testing.assert_allclose(np.unique(y), [0.0, 1.0 / (1.0 - rate)], rtol=1e-4 + precision)


def test_neighbours_are_dropped_independently():
    y = dropout(tf.ones([16, 100, 100]), 0.5, place(), "stream").numpy().reshape(-1) > 0
    both = np.mean(y[::2] & y[1::2])  # The two halves of one random word.
    assert abs(both - 0.25) < 5 * math.sqrt(0.25 * 0.75 / (y.size / 2))


def test_dropout_passes_gradients_where_it_passed_values():
    x = tf.ones([2, 3, 5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dropout(x, 0.4, place(), "stream")
    np.testing.assert_array_equal(tape.gradient(y, x), y)


def test_without_randomness_nothing_is_dropped():
    x = tf.random.stateless_normal([2, 3], seed=[1, 2])
    assert dropout(x, 0.5, None, "stream") is x
    assert dropout(x, 0.0, place(), "stream") is x

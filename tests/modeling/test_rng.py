import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling import rng as rng_module
from electra_tf.modeling.rng import dropout_keys, keep_mask
from tests.support.rng import rng_at


def test_words_are_philox_4x32_10(monkeypatch):
    # Known answer of the authors' Random123 test vectors for an all-zero key and counter.
    monkeypatch.setattr(rng_module, "stream_key", lambda seed, stream: 0)
    bits = rng_at(step=0).bits("any", 1, 4).numpy().view(np.uint32)
    assert [f"{word:08x}" for word in bits[0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize("words", [1, 6, 64])
@pytest.mark.parametrize(("first", "stride", "parts"), [(10, 1, 1), (4, 3, 1), (10, 1, 5),
                                                        (4, 3, 5)])
def test_an_examples_bits_dont_depend_on_the_rows_around_it(words, first, stride, parts):
    all_bits = rng_at().bits("stream", 13 * parts, words).numpy().reshape([13, parts, words])
    part = dataclasses.replace(rng_at(first_example=first), stride=stride, parts=parts)
    bits = part.bits("stream", 3 * parts, words).numpy().reshape([3, parts, words])
    np.testing.assert_array_equal(bits, all_bits[first::stride])


def test_step_stream_seed_and_scope_each_change_the_bits():
    base = rng_at().bits("stream", 2, 64).numpy()
    others = [
        rng_at(step=4).bits("stream", 2, 64), rng_at(seed=8).bits("stream", 2, 64),
        rng_at().bits("other", 2, 64), rng_at().within("part").bits("stream", 2, 64)]
    for other in others:
        # 128 independent words agree by chance with probability below 1e-7.
        assert np.mean(base == other.numpy()) == 0.0


def test_xla_draws_the_same_bits():
    compiled = tf.function(
        lambda step, first: dataclasses.replace(rng_at(), step=step, first_example=first)
        .bits("stream", 4, 100), jit_compile=True)
    np.testing.assert_array_equal(
        compiled(tf.constant(3, tf.int64), tf.constant(5, tf.int64)),
        rng_at(first_example=5).bits("stream", 4, 100))


def test_uniforms_are_uniform_and_below_one():
    values = rng_at().uniform("stream", 64, 4096).numpy()
    assert values.dtype == np.float32
    assert values.min() >= 0.0 and values.max() < 1.0
    counts = np.histogram(values, bins=64, range=(0.0, 1.0))[0]
    expected = values.size / 64
    # Chi-square with 63 degrees of freedom exceeds 126 with probability 4e-6.
    assert np.sum((counts - expected) ** 2 / expected) < 126


def test_a_mask_keeps_what_it_should_in_every_example_and_position():
    rate, shape = 0.1, tf.TensorShape([256, 32, 64])
    kept = keep_mask(dropout_keys(rng_at(), "stream", 256), shape, rate).numpy()
    for axes, count in (((0, 1, 2), kept.size), ((1, 2), 32 * 64), ((0,), 256)):
        share = kept.mean(axis=axes)
        deviation = math.sqrt(rate * (1.0 - rate) / count)
        assert np.abs(share - (1.0 - rate)).max() < 6.0 * deviation
    # Over the 2,048 positions the counts vary as a binomial's: chi-square, 2,047 degrees.
    counts = kept.sum(axis=0)
    statistic = np.sum((counts - 256 * 0.9) ** 2) / (256 * 0.9 * 0.1)
    assert abs(statistic - 2047) < 6.0 * math.sqrt(2 * 2047)


@pytest.mark.parametrize("offset", [1, 64])
def test_mask_decisions_are_independent_of_each_other(offset):
    rate, shape = 0.5, tf.TensorShape([64, 64, 64])

    def drawn(step=3, stream="stream"):
        keys = dropout_keys(rng_at(step=step), stream, 64)
        return keep_mask(keys, shape, rate).numpy().reshape(64, -1)

    kept, rows = drawn(), offset % 63 or 1
    for first, second in (
            (kept[:, offset:], kept[:, :-offset]),  # Neighbours in one example,
            (kept[rows:], kept[:-rows]),  # the same place in others,
            (kept, drawn(step=3 + offset)),  # in other steps,
            (kept, drawn(stream=f"stream{offset}"))):  # and in other streams.
        both = np.mean(first & second)
        assert abs(both - 0.25) < 6.0 * math.sqrt(0.25 * 0.75 / first.size)

import math

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import SamplingConfig
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling import corruption
from electra_tf.modeling.corruption import cross_entropy, distribution, sample
from electra_tf.modeling.masking import Predictions
from electra_tf.objectives.electra import ElectraObjective
from tests.modeling.test_randomness import randomness_at
from tests.support import golden_files, tiny_context


def logits(rows=7, entries=256, scale=3.0):
    return scale * tf.random.stateless_normal([rows, entries], seed=[1, 2])


RANDOMNESS = randomness_at(step=0, seed=3)


def uniforms(count):
    return tf.reshape(RANDOMNESS.uniform("sampling", 1, count), [-1])


def test_cross_entropy_and_its_gradient_equal_tensorflows():
    x, labels = logits(), tf.constant([0, 5, 255, 17, 3, 128, 127])
    upstream = tf.constant([1.0, 2.0, 0.0, -1.0, 0.5, 3.0, 1.0])
    results = []
    for function in (lambda: cross_entropy(x, labels, distribution(x)),
                     lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            losses = function()
        results.append((losses, tape.gradient(losses, x, output_gradients=upstream)))
    for value, expected in zip(*results, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


def test_bfloat16_logits_lose_nothing_in_the_sums():
    x = tf.cast(logits(entries=30592), tf.bfloat16)
    labels = tf.zeros([7], tf.int32)
    np.testing.assert_allclose(
        cross_entropy(x, labels, distribution(x)),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.cast(x, tf.float32)), rtol=1e-5)


def weighted(weights):
    """The distribution proportional to weights [M, V]."""
    return distribution(tf.math.log(tf.constant(weights, tf.float32)))


def test_samples_are_distributed_as_the_softmax():
    probabilities = tf.nn.softmax(logits(rows=1, entries=384, scale=1.0))[0].numpy()
    count = 100_000
    rows = weighted(np.tile(probabilities[np.newaxis], [count, 1]))
    drawn = sample(rows, uniforms(count)).numpy()
    expected = probabilities * count
    assert expected.min() > 5  # For the chi-square approximation.
    statistic = np.sum((np.bincount(drawn, minlength=384) - expected) ** 2 / expected)
    assert statistic < 383 + 5 * math.sqrt(2 * 383)


@pytest.mark.parametrize("entries", [[0], [255], [100, 130], [127, 128], [3, 3 + 128]])
def test_entries_of_weight_zero_are_never_drawn(entries):
    weights = np.zeros([5, 256], np.float32)
    weights[:, entries] = 1e-20
    drawn = sample(weighted(weights), tf.constant([0.0, 0.25, 0.5, 0.75, 1.0 - 2.0**-24]))
    assert set(drawn.numpy()) <= set(entries)


def test_a_uniform_selects_the_interval_that_holds_it():
    weights = np.zeros([4, 256], np.float32)
    weights[:, [10, 20, 200]] = [0.25, 0.25, 0.5]
    drawn = sample(weighted(weights), tf.constant([0.24, 0.26, 0.49, 0.51]))
    assert drawn.numpy().tolist() == [10, 20, 20, 200]


def test_a_temperature_divides_the_logits_and_1_changes_nothing():
    softmax = distribution(logits())
    assert corruption.at_temperature(softmax, 1.0) is softmax
    colder = corruption.at_temperature(softmax, 0.5)
    np.testing.assert_array_equal(colder.logits, 2 * softmax.logits)
    np.testing.assert_allclose(
        tf.math.log(tf.reduce_sum(colder.block_sums, axis=-1)) + colder.largest,
        tf.reduce_logsumexp(2 * softmax.logits, axis=-1), rtol=1e-6)


def test_samples_without_originals_have_the_references_distribution():
    """Google's code takes 1,000 from the logits of the right answers."""
    golden = golden_files.load("masking_sampling")
    x = tf.reshape(golden["logits"], [18, 50])
    x = tf.pad(x, [[0, 0], [0, 78]], constant_values=-1e9)
    labels = tf.reshape(golden["disallow_ids"], [-1])
    expected = tf.nn.softmax(x - 1000.0 * tf.one_hot(labels, 128))
    restricted = corruption.without(distribution(x), labels)
    weights = tf.exp(restricted.logits - restricted.largest[:, tf.newaxis])
    np.testing.assert_allclose(weights / tf.reduce_sum(weights, axis=-1, keepdims=True), expected,
                               rtol=1e-5, atol=1e-9)
    drawn = golden["sampled_disallow"].reshape(-1)
    assert (drawn != labels.numpy()).all() and (expected.numpy()[range(18), drawn] > 0).all()


def test_the_setting_keeps_right_answers_out_of_the_samples():
    x = tf.tensor_scatter_nd_update(logits(rows=6), [[row, 5] for row in range(6)], [50.0] * 6)
    slots = Predictions(tf.zeros([2, 3], tf.int32), tf.fill([2, 3], 5), tf.ones([2, 3], tf.bool))

    def drawn(**sampling) -> np.ndarray:
        config = PretrainingConfig(sampling=SamplingConfig(**sampling))
        objective = ElectraObjective(config, tiny_context.of(vocab_size=256))
        return objective.sample(distribution(x), slots, RANDOMNESS).numpy()

    assert (drawn() == 5).all()
    assert (drawn(disallow_correct=True) != 5).all()

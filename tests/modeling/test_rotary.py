"""Rotary positions: the formula in complex numbers, and what depends on distances alone."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import EncoderConfig
from electra_tf.core.errors import UserError
from electra_tf.modeling.encoder import attention_bias, create_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.rotary import frequencies, rotate, rotation

CONFIG = EncoderConfig(
    vocab_size=60, embedding_size=16, hidden_size=32, num_layers=2, num_heads=4,
    intermediate_size=64, max_position_embeddings=24, hidden_dropout=0.0, attention_dropout=0.0,
    positions="rotary", initializer_range=0.3)
IDS = np.random.default_rng(3).integers(5, 60, [2, 12])


def encode(encoder, ids):
    ids = tf.constant(ids, tf.int32)
    return encoder(ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool))


def test_pairs_are_complex_numbers_that_are_multiplied_by_a_phase():
    x = np.random.default_rng(1).normal(size=[2, 9, 8]).astype(np.float32)
    # w_j = 100^(-2j / 8) = 1, 0.316, 0.1, 0.0316 radians from one position to the next.
    phases = np.exp(1j * np.outer(np.arange(9), [1, 10**-0.5, 0.1, 10**-1.5]))
    expected = (x[..., :4] + 1j * x[..., 4:]) * phases
    turned = rotate(tf.constant(x), *rotation(9, 8, base=100.0)).numpy()
    np.testing.assert_allclose(turned[..., :4], expected.real, atol=1e-6)
    np.testing.assert_allclose(turned[..., 4:], expected.imag, atol=1e-6)
    np.testing.assert_allclose(frequencies(64, 10_000.0)[[0, 16, 31]], [1, 1e-2, 1.333521e-4],
                               rtol=1e-6)


def test_attention_depends_on_differences_of_positions_alone():
    """A row after five other tokens, which nobody attends to, has the weights that it has alone."""
    encoder = create_encoder(CONFIG, LayerOptions(seed=1))
    layer = encoder.encoder_layers[0].attention
    x = encoder.embeddings_project(encoder.embeddings(
        tf.constant(IDS, tf.int32), tf.zeros(IDS.shape, tf.int32), None))
    alone = layer.probabilities(x, attention_bias(tf.ones(IDS.shape, tf.bool), tf.float32),
                                encoder.rotation(12))
    later = layer.probabilities(
        tf.pad(x, [[0, 0], [5, 0], [0, 0]]),
        attention_bias(tf.constant([[False] * 5 + [True] * 12] * 2), tf.float32),
        encoder.rotation(17))
    np.testing.assert_allclose(later[:, :, 5:, 5:], alone, atol=1e-6)
    unturned = layer.probabilities(x, attention_bias(tf.ones(IDS.shape, tf.bool), tf.float32))
    assert np.abs(unturned - alone).max() > 0.1


def test_no_weight_depends_on_the_number_of_positions():
    encoder = create_encoder(CONFIG, LayerOptions(seed=1))
    longer = create_encoder(dataclasses.replace(CONFIG, max_position_embeddings=100),
                            LayerOptions(seed=1))
    assert not any("position" in variable.name for variable in encoder.variables)
    np.testing.assert_array_equal(encode(encoder, IDS), encode(longer, IDS))
    assert encode(longer, np.tile(IDS, [1, 8])).shape == (2, 96, 32)


@pytest.mark.parametrize("first_only", [False, True])
def test_the_gradient_is_that_of_plain_ops(first_only):
    encoder = create_encoder(CONFIG, LayerOptions(seed=1))
    kernels = [part.kernel for layer in encoder.encoder_layers
               for part in (layer.attention.query, layer.attention.key, layer.attention.value)]
    ids = tf.constant(IDS, tf.int32)
    inputs = ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool)
    weights = np.random.default_rng(4).normal(size=32)

    def loss():
        vectors = encoder.first(*inputs) if first_only else encoder(*inputs)
        return tf.reduce_mean(tf.cast(vectors, tf.float64) @ weights[:, np.newaxis])

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, kernels)
    # Central differences along one random direction for each kernel.
    for kernel, gradient in zip(kernels, gradients, strict=True):
        direction = np.random.default_rng(5).normal(size=kernel.shape) * 3e-3
        start = kernel.numpy()
        values = []
        for sign in (1, -1):
            kernel.assign(start + sign * direction)
            values.append(float(loss()))
        kernel.assign(start)
        np.testing.assert_allclose((values[0] - values[1]) / 2, np.sum(gradient * direction),
                                   rtol=0.05, atol=3e-7)


def test_a_head_of_odd_size_is_refused():
    with pytest.raises(UserError, match="rotary"):
        dataclasses.replace(CONFIG, hidden_size=36)

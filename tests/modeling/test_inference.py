"""The encoder that answers computes what the encoder that trains does, and so does [CLS] alone."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import EncoderConfig, Positions
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.layers import LayerOptions
from tests.support import named_arrays
from tests.support.padded_rows import random_encoder, random_rows

CONFIG = EncoderConfig(
    vocab_size=60, embedding_size=16, hidden_size=32, num_layers=3, num_heads=4,
    intermediate_size=64, max_position_embeddings=24, type_vocab_size=2, hidden_dropout=0.1,
    attention_dropout=0.1, initializer_range=0.02)
LENGTHS = [7, 1, 20, 3]


@pytest.fixture(scope="module", params=Positions)
def encoder(request):
    return random_encoder(dataclasses.replace(CONFIG, positions=request.param))


@pytest.fixture(scope="module")
def batch():
    return random_rows(LENGTHS)


@pytest.mark.parametrize("tensor_parallel", [1, 4])
def test_vectors_are_the_trained_encoders(encoder, batch, tensor_parallel):
    expected, answers = encoder(*batch), InferenceEncoder(encoder, tf.float32, tensor_parallel)
    np.testing.assert_allclose(answers.first(*batch), expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(answers(*batch)[batch[2]], expected[batch[2]], atol=1e-5)


def test_the_weights_of_another_encoder_are_taken(encoder, batch):
    other = create_encoder(encoder.config, LayerOptions(seed=5))
    answers = InferenceEncoder(other, tf.float32, 2)
    answers.assign(encoder)
    np.testing.assert_allclose(answers.first(*batch), encoder(*batch)[:, 0], atol=1e-5)


def test_an_encoder_of_one_segment_has_its_vector_in_all_segments(batch):
    """Transformers trained it with segment 0 alone, and refuses others."""
    encoder = random_encoder(dataclasses.replace(CONFIG, type_vocab_size=1))
    ids, _, padding_mask = batch
    vectors = [encoder(ids, tf.fill(ids.shape, segment), padding_mask) for segment in (0, 1)]
    np.testing.assert_allclose(*vectors, atol=1e-5)


def test_one_graph_takes_any_batch_and_length_and_ignores_padding(encoder, batch):
    spec = tf.TensorSpec([None, None], tf.int32)
    answers = InferenceEncoder(encoder, tf.float32)
    function = tf.function(answers.first, autograph=False).get_concrete_function(
        spec, spec, tf.TensorSpec([None, None], tf.bool))
    together = function(*batch)
    for line, length in enumerate(LENGTHS):
        alone = function(*(part[line:line + 1, :length] for part in batch))
        np.testing.assert_allclose(alone[0], together[line], atol=1e-5)
    assert function(*(part[:0] for part in batch)).shape == (0, 32)


def test_bfloat16_errs_little_more_than_mixed_precision(encoder, batch):
    exact = encoder(*batch)[:, 0].numpy()
    mixed = create_encoder(encoder.config, LayerOptions(seed=1, policy="mixed_bfloat16"))
    named_arrays.assign(mixed.variables, named_arrays.of(encoder.variables))

    def error(vectors):
        return np.abs(tf.cast(vectors, tf.float32).numpy() - exact).mean()

    # Sums before a norm are rounded here, and kept in float32 there.
    assert error(InferenceEncoder(encoder, tf.bfloat16).first(*batch)) < 3.0 * error(
        mixed(*batch)[:, 0]) < 0.05


def test_the_last_layer_computes_one_position_with_equal_gradients(encoder, batch):
    results = []
    for compute in (lambda: encoder.first(*batch), lambda: encoder(*batch)[:, 0]):
        with tf.GradientTape() as tape:
            vectors = compute()
            loss = tf.reduce_sum(tf.sin(vectors))
        gradients = tape.gradient(loss, encoder.trainable_variables)
        results.append([vectors, *map(tf.convert_to_tensor, gradients)])
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-5)

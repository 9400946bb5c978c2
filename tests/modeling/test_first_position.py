"""The last layer may compute [CLS] alone: less work, the same vectors and gradients."""

import numpy as np
import tensorflow as tf

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.electra import electra_encoder

CONFIG = EncoderConfig(
    vocab_size=60, embedding_size=16, hidden_size=32, num_layers=2, num_heads=4,
    intermediate_size=64, max_position_embeddings=24, type_vocab_size=2, hidden_dropout=0.0,
    attention_dropout=0.0, initializer_range=0.1)


def test_vectors_and_gradients_are_those_of_the_whole():
    encoder = electra_encoder(CONFIG, seed=1, policy="float32")
    draw = np.random.default_rng(1)
    batch = (tf.constant(draw.integers(0, 60, (3, 7)), tf.int32), tf.zeros([3, 7], tf.int32),
             tf.sequence_mask([7, 2, 5], 7))
    results = []
    for compute in (lambda: encoder.first(*batch), lambda: encoder(*batch)[:, 0]):
        with tf.GradientTape() as tape:
            vectors = compute()
            loss = tf.reduce_sum(tf.sin(vectors))
        gradients = tape.gradient(loss, encoder.trainable_variables)
        results.append([vectors, *map(tf.convert_to_tensor, gradients)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)

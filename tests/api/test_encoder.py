import doctest

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import electra_tf
from electra_tf.api import encoder as module

TEXTS = tf.constant(["the chef cooked the meal .", "text"])
IDS = [[2, 5, 6, 8, 9, 5, 10, 12, 3], [2, 13, 3, 0, 0, 0, 0, 0, 0]]


@pytest.fixture
def encoder(directory):
    return electra_tf.load(str(directory)).encoder


def classifier(encoder, inputs):
    vectors = tf_keras.layers.GlobalAveragePooling1D()(encoder(inputs))
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(2)(vectors))
    model.compile(tf_keras.optimizers.Adam(1e-3),
                  tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def test_texts_ids_and_parts_are_the_same_input(encoder):
    from_texts = encoder(TEXTS)
    assert from_texts.shape == (2, 9, encoder.config.hidden_size)
    for inputs in (tf.constant(IDS), {"ids": tf.constant(IDS)}, {
            "ids": tf.constant(IDS), "segment_ids": tf.zeros([2, 9], tf.int64),
            "valid": tf.constant(IDS) > 0}):
        np.testing.assert_array_equal(encoder(inputs)[0], from_texts[0])
    np.testing.assert_array_equal(from_texts._keras_mask.numpy().sum(axis=1), [9, 3])


def test_padding_does_not_change_a_row(encoder):
    np.testing.assert_allclose(encoder(tf.constant([IDS[1][:3]]))[0], encoder(TEXTS)[1, :3],
                               atol=1e-6)


def test_dropout_is_drawn_anew_for_every_call_and_row_in_training_only(encoder):
    rows = tf.constant([IDS[0], IDS[0]])
    first, second = encoder(rows, training=True), encoder(rows, training=True)
    assert np.abs(first - second).max() > 0.01
    assert np.abs(first[0] - first[1]).max() > 0.01
    np.testing.assert_array_equal(encoder(rows), encoder(rows))


def test_fit_learns_to_tell_texts_apart_with_batches_of_any_size(encoder):
    model = classifier(encoder, tf_keras.Input([], dtype=tf.string))
    texts = tf.repeat(tf.constant(["the chef ate", "the piano ate the text"]), 16)
    labels = np.repeat([0, 1], 16)
    losses = model.fit(texts, labels, batch_size=5, epochs=12, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


def test_a_saved_model_predicts_the_same_and_keeps_learning(encoder, tmp_path):
    model = classifier(encoder, tf_keras.Input([], dtype=tf.string))
    model.save(tmp_path / "model.keras")
    loaded = tf_keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(TEXTS), model(TEXTS))
    loaded.fit(TEXTS, np.array([0, 1]), verbose=0)
    assert np.abs(loaded(TEXTS) - model(TEXTS)).max() > 0


def test_a_layer_is_made_from_its_configuration(encoder):
    other = electra_tf.ElectraEncoder.from_config(encoder.get_config())
    assert {w.name: w.shape for w in other.weights} == {w.name: w.shape for w in encoder.weights}
    other.set_weights(encoder.get_weights())
    np.testing.assert_array_equal(other(TEXTS), encoder(TEXTS))


def test_the_gradient_equals_the_training_graphs(encoder):
    """Its own gradients, written by hand, are those of a row of static shape."""
    ids = tf.constant([IDS[0]])
    weights = [w for w in encoder.trainable_weights if "layer_0/intermediate" in w.name]
    with tf.GradientTape(persistent=True) as tape:
        ours = tf.reduce_sum(encoder(ids)[:, :, :3])
        static = tf.reduce_sum(encoder._encoder(ids, tf.zeros_like(ids), ids > 0)[:, :, :3])
    for one, other in zip(tape.gradient(ours, weights), tape.gradient(static, weights),
                          strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


def test_the_example_runs(electra):
    done = doctest.testmod(module, extraglobs={"electra": electra})
    assert done.attempted >= 5
    assert done.failed == 0

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import electra_tf
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from tests.support import tiny_networks
from tests.support.refusals import refused

TEXTS = tf.constant(["the chef cooked the meal .", "text"])
IDS = [[2, 5, 6, 8, 9, 5, 10, 12, 3], [2, 13, 3, 0, 0, 0, 0, 0, 0]]


@pytest.fixture(scope="module")
def directory(checkpoint, tmp_path_factory):
    """A run of two layers."""
    path = tmp_path_factory.mktemp("encoder") / "run"
    pretrained.write(tiny_networks.pretrained(checkpoint.text.vocabulary), path, Format.RUN)
    return path


@pytest.fixture(scope="module")
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
            "padding_mask": tf.constant(IDS) > 0}):
        np.testing.assert_array_equal(encoder(inputs)[0], from_texts[0])
    np.testing.assert_array_equal(from_texts._keras_mask.numpy().sum(axis=1), [9, 3])
    ragged = tf.ragged.constant([IDS[0], IDS[1][:3]])
    np.testing.assert_array_equal(encoder(ragged), encoder(tf.constant(IDS)))
    np.testing.assert_allclose(encoder(tf.constant([IDS[1][:3]]))[0], from_texts[1, :3], atol=1e-5)
    batches = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(encoder)
    np.testing.assert_allclose(next(iter(batches)), from_texts, atol=1e-5)


@pytest.mark.parametrize("pairs", [
    [("the chef", "meal"), ("text", "first")], np.array([["the chef", "meal"], ["text", "first"]]),
    (tf.constant(["the chef", "text"]), tf.constant([["meal"], ["first"]])),
    [np.array(["the chef", "text"]), np.array(["meal", "first"])]])
def test_rows_and_columns_of_two_texts_are_pairs(encoder, pairs):
    tokens = encoder.tokens(pairs)
    np.testing.assert_array_equal(tokens.ids, [[2, 5, 6, 3, 10, 3], [2, 13, 3, 14, 3, 0]])
    np.testing.assert_array_equal(tokens.segment_ids, [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]])
    names = dict(zip(("input_ids", "token_type_ids", "attention_mask"), tokens, strict=True))
    np.testing.assert_array_equal(encoder(names), encoder(pairs))


def test_one_pair_and_two_texts_are_told_apart(encoder):
    assert encoder.tokens([("the chef", "meal")]).ids.shape == (1, 6)
    assert encoder.tokens(["the chef", "meal"]).ids.shape == (2, 4)
    columns = ["the", "chef"], ["meal", "the"]
    for ambiguous in (("the chef", "meal"), columns, (["the chef"], ["meal"])):
        with refused("ambiguous"):
            encoder(ambiguous)
    np.testing.assert_array_equal(  # The first and the second texts of two pairs.
        encoder.tokens(list(zip(*columns, strict=True))).ids,
        encoder.tokens(tuple(map(tf.constant, columns))).ids)


def calling(encoder):
    """Returns a model of Keras 3 that calls the encoder."""
    model = type("Model", (tf.keras.Model,), {"call": lambda self, texts: encoder(texts)[:, 0]})()
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("attempt", [
    lambda encoder: calling(encoder)(TEXTS),
    lambda encoder: calling(encoder).fit(tf.data.Dataset.from_tensors((TEXTS, [0, 1])), verbose=0),
    lambda encoder: encoder({"ids": tf.keras.Input([None], dtype="int32")}),
    lambda encoder: tf.keras.Sequential([encoder])])
def test_models_of_keras_3_are_refused(encoder, attempt):
    with pytest.raises(ValueError, match="use tf_keras for (the whole|its) model"):
        attempt(encoder)


def test_layers_and_attention_are_those_of_the_formulas(encoder):
    """softmax(Q K^T / sqrt(D)) of the vectors below a layer, by NumPy (Vaswani et al., 2017)."""
    outputs = encoder(TEXTS, output_hidden_states=True, output_attentions=True)
    weights = {variable.name.split(":")[0]: variable.numpy() for variable in encoder.variables}
    padding_mask = np.array(IDS) > 0
    for number, attention in enumerate(outputs.attentions):
        path = f"electra/encoder/layer_{number}/attention/self"
        query, key = (
            (outputs.hidden_states[number] @ weights[f"{path}/{name}/kernel"]
             + weights[f"{path}/{name}/bias"]).numpy().reshape(2, 9, 2, 16).transpose(0, 2, 1, 3)
            for name in ("query", "key"))
        exponentials = np.exp(query @ key.swapaxes(2, 3) / 4.0) * padding_mask[:, None, None]
        np.testing.assert_allclose(
            attention, exponentials / exponentials.sum(-1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(outputs.last_hidden_state, encoder(TEXTS), atol=1e-5)
    assert [len(part) for part in outputs[1:]] == [3, 2]
    assert encoder(TEXTS, output_attentions=True).hidden_states == ()


def test_dropout_differs_between_calls_and_rows_in_training_only(encoder):
    rows = tf.constant([IDS[0], IDS[0]])
    first, second = encoder(rows, training=True), encoder(rows, training=True)
    assert min(np.abs(first - second).max(), np.abs(first[0] - first[1]).max()) > 0.01
    np.testing.assert_array_equal(encoder(rows), encoder(rows))


def test_fit_reduces_the_loss_with_batches_of_any_size(directory):
    model = classifier(electra_tf.load(directory).encoder, tf_keras.Input([], dtype=tf.string))
    texts = tf.repeat(tf.constant(["the chef ate", "the piano ate the text"]), 16)
    labels = np.repeat([0, 1], 16)
    losses = model.fit(texts, labels, batch_size=11, epochs=16, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]


RELOADING = """
import sys
from electra_tf import ElectraEncoder
import numpy as np, tensorflow as tf, tf_keras
texts, expected = tf.constant(["the chef cooked the meal .", "text"]), np.load("expected.npy")
for name in sys.argv[1:]:
    model = tf_keras.models.load_model(name)
    np.testing.assert_allclose(model(texts), expected, atol=1e-6)
    model.fit(texts, np.array([0, 1]), verbose=0)
    assert np.abs(model(texts) - expected).max() > 0
"""


@pytest.mark.slow
def test_a_saved_model_predicts_the_same_elsewhere_and_keeps_learning(encoder, tmp_path):
    model = classifier(encoder, tf_keras.Input([], dtype=tf.string))
    names = ["model.keras", "model.h5", "directory"]
    for name in names:
        model.save(tmp_path / name)
    np.save(tmp_path / "expected.npy", model(TEXTS))
    done = subprocess.run(
        [sys.executable, "-c", RELOADING, *names], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("inputs", "words"), [
    ([["a", "b", "c"]], "shape"), ([[5.0, 6.0]], "float32"), ([[5] * 40], "at most 32"),
    ({"ids": [[5]], "mask": [[1]]}, "mask"), (["a", None], "None"), ([[5, 6], [5]], "Ragged"),
    ({"ids": [[5, 6]], "padding_mask": [1, 0]}, "padding_mask"), ([[99]], "ids must be from"),
    ({"ids": [[5]], "segment_ids": [[2]]}, "segment_ids must be from 0 to 1")])
def test_inputs_of_another_form_are_refused_in_one_line(encoder, inputs, words):
    with refused(words):
        encoder(inputs)


@pytest.mark.parametrize("call", [
    lambda layer: layer([TEXTS, TEXTS]),
    lambda layer: tf.cond(tf.size(TEXTS) > 1, lambda: layer(TEXTS), lambda: layer(TEXTS))])
@pytest.mark.parametrize("name", ["encoder", "tokenizer"])
def test_texts_are_refused_while_xla_compiles(directory, name, call):
    layer = getattr(electra_tf.load(directory), name)
    with refused("XLA has no strings"):
        tf.function(lambda: call(layer), jit_compile=True, autograph=False)()
    assert call(layer) is not None


def test_xla_compiles_a_model_of_ids(encoder):
    inputs = tf_keras.Input([9], dtype=tf.int32)
    model = tf_keras.Model(inputs, encoder(inputs)[:, 0])
    model.compile("sgd", "mse", jit_compile=True)
    np.testing.assert_allclose(
        model.predict(tf.constant(IDS), verbose=0), encoder(TEXTS)[:, 0], atol=1e-5)
    texts = tf_keras.Input([], dtype=tf.string)
    of_texts = tf_keras.Model(texts, encoder(texts)[:, 0])
    of_texts.compile("sgd", "mse", jit_compile=True)
    with pytest.raises(Exception, match="XLA has no strings"):  # AutoGraph changes the type.
        of_texts.predict(TEXTS, verbose=0)


def test_a_layer_is_made_from_its_configuration_and_saved_or_refused(encoder, tmp_path):
    with tf.name_scope("outer"):
        other = type(encoder).from_config(encoder.get_config())
    other.set_weights(encoder.get_weights())
    np.testing.assert_array_equal(other(TEXTS), encoder(TEXTS))
    other.save_pretrained(tmp_path / "saved")
    np.testing.assert_array_equal(
        electra_tf.load(tmp_path / "saved").encoder(TEXTS), encoder(TEXTS))
    for name, value in (("max_length", 2), ("max_length", 33), ("vocabulary", ["[PAD]"])):
        with refused(name):
            electra_tf.ElectraEncoder(**encoder.get_config() | {name: value})


def test_a_model_refuses_float_ids_and_rows_that_are_too_long(encoder):
    with refused("int32"):  # A policy would round them.
        encoder(tf_keras.Input([None]))
    model = classifier(encoder, tf_keras.Input([None], dtype=tf.int32))
    traced = tf.function(model, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    assert traced(tf.ones([1, 32], tf.int32)).shape == (1, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than the encoder reads"):
        traced(tf.ones([1, 33], tf.int32))


def test_blocks_can_be_frozen_and_gradients_reach_the_others(directory):
    encoder = electra_tf.load(directory).encoder
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(TEXTS) ** 2)
    assert None not in tape.gradient(loss, encoder.trainable_weights)
    for block in encoder.blocks[:-1]:
        block.trainable = False
    assert {weight.name.split("/layer_")[1][0] for weight in encoder.trainable_weights} == {"1"}

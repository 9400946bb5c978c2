import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig, Tying
from electra_tf.modeling.electra import ElectraModel

CONFIG = ModelConfig(
    vocab_size=50, embedding_size=8, hidden_size=16, num_layers=2, num_heads=2,
    intermediate_size=32, max_position_embeddings=16, generator_width=0.5)
WORDS = "word_embeddings"
OTHER_EMBEDDINGS = ("token_type_embeddings", "position_embeddings", "LayerNorm")


def names(network) -> set[str]:
    return {variable.name for variable in network.trainable_variables}


def build(tying: Tying) -> ElectraModel:
    return ElectraModel(dataclasses.replace(CONFIG, tying=tying), seed=1)


def test_all_embeddings_shares_tables_and_layer_norm_but_no_projection():
    model = build(Tying.ALL_EMBEDDINGS)
    shared = names(model.generator) & names(model.discriminator)
    assert len(shared) == 5
    assert all(name.startswith("electra/embeddings/") for name in shared)
    assert any(WORDS in name for name in shared)
    assert all(any(part in name for name in shared) for part in OTHER_EMBEDDINGS)


def test_token_embeddings_shares_the_word_table_alone():
    model = build(Tying.TOKEN_EMBEDDINGS)
    shared = names(model.generator) & names(model.discriminator)
    assert shared == {"electra/embeddings/word_embeddings:0"}


def test_none_shares_nothing():
    model = build(Tying.NONE)
    assert not names(model.generator) & names(model.discriminator)


def test_everything_shares_all_but_the_heads():
    model = build(Tying.EVERYTHING)
    unshared = names(model.generator) ^ names(model.discriminator)
    assert all("predictions" in name for name in unshared)


@pytest.mark.parametrize("tying", list(Tying))
def test_names_are_unique(tying):
    variables = build(tying).trainable_variables
    assert len({variable.name for variable in variables}) == len(variables)


def test_initial_weights_are_a_function_of_seed_and_name():
    first, again, other = build(Tying.NONE), build(Tying.NONE), ElectraModel(CONFIG, seed=2)
    values = {variable.name: variable.numpy() for variable in other.trainable_variables}
    for one, same in zip(first.trainable_variables, again.trainable_variables, strict=True):
        np.testing.assert_array_equal(one, same)
        if "kernel" in one.name and one.shape == values.get(one.name, np.zeros(0)).shape:
            assert np.mean(one.numpy() == values[one.name]) == 0.0


def test_kernels_are_drawn_as_the_reference_draws_them():
    config = dataclasses.replace(CONFIG, hidden_size=256, intermediate_size=1024)
    values = {variable.name.split(":")[0]: variable.numpy()
              for variable in ElectraModel(config, seed=1).trainable_variables}
    # A normal of 0.02 cut at two deviations has deviation 0.02 * 0.8796.
    kernel = values["electra/encoder/layer_0/intermediate/dense/kernel"]
    assert kernel.std() == pytest.approx(0.02 * 0.8796, rel=0.01)
    assert np.abs(kernel).max() <= 0.04
    for name, fans in (("electra/embeddings_project/kernel", 8 + 256),
                       ("discriminator_predictions/dense_1/kernel", 256 + 1)):
        limit = (6 / fans) ** 0.5
        assert 0.9 * limit < np.abs(values[name]).max() <= limit
    assert values["electra/encoder/layer_0/output/dense/bias"].any() == 0
    assert values["electra/embeddings/LayerNorm/gamma"].all() == 1


def disentangled_gradients(part: str) -> dict[str, bool]:
    """Which tables of words the loss of a network reaches."""
    model = build(Tying.DISENTANGLED)
    ids = tf.constant([[1, 2, 3, 4]])
    segments, valid = tf.zeros_like(ids), tf.ones_like(ids, tf.bool)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(
            model.discriminator(ids, segments, valid) if part == "discriminator"
            else model.generator(ids, segments, valid, tf.constant([[1]]))[:, :50]))
    tables = {variable.name.split(":")[0]: variable for variable in model.trainable_variables
              if WORDS in variable.name}
    return {name: gradient is not None for name, gradient in zip(
        tables, tape.gradient(loss, list(tables.values())), strict=True)}


def test_disentangled_words_learn_of_one_network_each():
    """DeBERTaV3, section 3.3: the discriminator's gradient reaches the difference alone."""
    assert disentangled_gradients("discriminator") == {
        "generator/embeddings/word_embeddings": False,
        "electra/embeddings/difference/word_embeddings": True}
    assert disentangled_gradients("generator") == {
        "generator/embeddings/word_embeddings": True,
        "electra/embeddings/difference/word_embeddings": False}


def test_disentangled_words_are_the_generators_plus_the_difference():
    model = build(Tying.DISENTANGLED)
    words = model.discriminator.encoder.embeddings.words
    base = model.generator.encoder.embeddings.words.table
    np.testing.assert_array_equal(words.table, base)  # At first.
    words.difference.assign_add(tf.ones_like(words.difference))
    np.testing.assert_array_equal(words.table, base + 1.0)
    np.testing.assert_array_equal(words(tf.constant([3, 1])), tf.gather(base, [3, 1]) + 1.0)


def test_other_embeddings_are_each_networks_own_where_words_are_disentangled():
    model = build(Tying.DISENTANGLED)
    assert model.generator.encoder.embeddings.positions is not (
        model.discriminator.encoder.embeddings.positions)
    assert model.generator.encoder.config.embedding_size == CONFIG.embedding_size

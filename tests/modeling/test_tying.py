import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import ModelConfig, Tying
from electra_tf.modeling.electra import ElectraModel

CONFIG = ModelConfig(
    vocab_size=50, embedding_size=8, hidden_size=16, num_layers=2, num_heads=2,
    intermediate_size=32, max_position_embeddings=16, generator_width=0.5)
WORDS = "embeddings/word_embeddings"
EMBEDDINGS = {f"electra/embeddings/{name}:0" for name in (
    "word_embeddings", "token_type_embeddings", "position_embeddings", "LayerNorm/gamma",
    "LayerNorm/beta")}


@pytest.fixture(scope="module")
def models():
    return {tying: ElectraModel(dataclasses.replace(CONFIG, tying=tying), seed=1)
            for tying in Tying}


def test_the_networks_share_what_is_tied(models):
    names = {tying: [{variable.name for variable in network.trainable_variables}
                     for network in (model.generator, model.discriminator)]
             for tying, model in models.items()}
    shared = {tying: own & other for tying, (own, other) in names.items()}
    assert shared[Tying.NONE] == shared[Tying.DISENTANGLED] == set()
    assert shared[Tying.TOKEN_EMBEDDINGS] == {f"electra/{WORDS}:0"}
    assert shared[Tying.ALL_EMBEDDINGS] == EMBEDDINGS
    own, other = names[Tying.EVERYTHING]
    assert all("predictions" in name for name in own ^ other)


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


def test_disentangled_words_learn_of_one_network_each(models):
    """DeBERTaV3, section 3.3: the discriminator's gradient reaches the difference alone."""
    model, ids = models[Tying.DISENTANGLED], tf.constant([[1, 2, 3, 4]])
    segments, valid = tf.zeros_like(ids), tf.ones_like(ids, tf.bool)
    tables = {variable.name.split(":")[0]: variable for variable in model.trainable_variables
              if "word_embeddings" in variable.name}
    reached = []
    for run in (lambda: model.discriminator(ids, segments, valid),
                lambda: model.generator(ids, segments, valid, tf.constant([[1]]))[:, :50]):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(run()))
        gradients = tape.gradient(loss, list(tables.values()))
        reached.append([name for name, gradient in zip(tables, gradients, strict=True)
                        if gradient is not None])
    assert reached == [["electra/embeddings/difference/word_embeddings"], [f"generator/{WORDS}"]]


def test_disentangled_words_are_the_generators_plus_the_difference(models):
    model = models[Tying.DISENTANGLED]
    words = model.discriminator.encoder.embeddings.words
    base = model.generator.encoder.embeddings.words.table
    np.testing.assert_array_equal(words.table, base)  # At first.
    words.difference.assign_add(tf.ones_like(words.difference))
    np.testing.assert_array_equal(words.table, base + 1.0)
    np.testing.assert_array_equal(words(tf.constant([3, 1])), tf.gather(base, [3, 1]) + 1.0)

"""Checkpoints that Model Garden's own classes restore and write, with equal outputs."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from official.nlp.modeling import models
from official.nlp.modeling.networks import BertEncoder, BertEncoderV2

from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.model import Tying
from electra_tf.core import storage
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.modeling.electra import ElectraModel
from tests.support import tiny_networks
from tests.support.refusals import refused

DRAW = np.random.default_rng(3)
LENGTHS = np.array([9, 12, 5])
IDS = (DRAW.integers(5, 40, [3, 12]) * (np.arange(12) < LENGTHS[:, None])).astype(np.int32)
MASK = (np.arange(12) < LENGTHS[:, None]).astype(np.int32)
TYPES = (np.arange(12) >= 6).astype(np.int32)[None] * MASK
INPUTS = {"input_word_ids": IDS, "input_mask": MASK, "input_type_ids": TYPES}
POSITIONS = np.array([[1, 2, 4]] * 3, np.int32)


def encoder_of(kind, config, **more):
    return kind(
        vocab_size=config.vocab_size, hidden_size=config.hidden_size, num_layers=config.num_layers,
        num_attention_heads=config.num_heads, max_sequence_length=config.max_position_embeddings,
        type_vocab_size=config.type_vocab_size, inner_dim=config.intermediate_size,
        inner_activation=tf_keras.activations.gelu, embedding_width=config.embedding_size,
        dict_outputs=True, **more)


def pretrainer(model, tied):
    """Returns Model Garden's ElectraPretrainer with the exact GELU, built."""
    encoder = encoder_of(BertEncoder, model.discriminator)
    more = {"embedding_layer": encoder.get_embedding_layer()} if tied else {}
    garden = models.ElectraPretrainer(
        encoder_of(BertEncoder, model.generator, **more), encoder, vocab_size=model.vocab_size,
        num_classes=2, num_token_predictions=3, mlm_activation=tf_keras.activations.gelu)
    garden(INPUTS | {"masked_lm_positions": POSITIONS, "masked_lm_ids": IDS[:, :3]})
    return garden


def restore(path, **objects):
    return tf.train.Checkpoint(**objects).restore(tf.train.latest_checkpoint(str(path)))


def require_equal_outputs(checkpoint, encoder, garden=None):
    """Compares hidden vectors of valid positions, and the logits of a whole pretrainer."""
    model, inputs = ElectraModel(checkpoint.config, seed=0), (IDS, TYPES, MASK > 0)
    assign_parts(model.trainable_variables, checkpoint.weights, "the tiny networks")
    hidden = encoder(INPUTS)["sequence_output"]
    expected = model.discriminator.encoder(*inputs).numpy()
    np.testing.assert_allclose(hidden[MASK > 0], expected[MASK > 0], rtol=0, atol=1e-5)
    if garden is not None:
        logits = garden.discriminator_head(garden.discriminator_projection(hidden))[..., 0]
        np.testing.assert_allclose(logits[MASK > 0], model.discriminator(*inputs)[MASK > 0],
                                   rtol=0, atol=1e-5)
        scores = garden(INPUTS | {"masked_lm_positions": POSITIONS, "masked_lm_ids": POSITIONS})
        expected = model.generator(*inputs, tf.constant(POSITIONS))[:,
                                                                    :checkpoint.config.vocab_size]
        np.testing.assert_allclose(np.reshape(scores["lm_outputs"], expected.shape), expected,
                                   rtol=0, atol=1e-5)


def test_encoders_restore_every_weight(tmp_path):
    checkpoint = tiny_networks.pretrained(model__embedding_size=32)
    alone = tiny_networks.without(checkpoint, "generator")
    for name, written in (("pair", checkpoint), ("alone", alone)):
        pretrained.write(written, tmp_path / name, Format.MODEL_GARDEN)
        encoder = encoder_of(BertEncoderV2, checkpoint.config.discriminator)
        encoder(INPUTS)
        restore(tmp_path / name, encoder=encoder).assert_existing_objects_matched()
        require_equal_outputs(checkpoint, encoder)


@pytest.mark.parametrize("tying", [Tying.ALL_EMBEDDINGS, Tying.NONE])
def test_an_electra_pretrainer_restores_both_networks_and_what_it_saves_is_read(tmp_path, tying):
    checkpoint, tied = tiny_networks.pretrained(model__tying=tying), tying is not Tying.NONE
    pretrained.write(checkpoint, tmp_path / "out", Format.MODEL_GARDEN)
    garden = pretrainer(checkpoint.config, tied)
    restore(tmp_path / "out", model=garden).expect_partial()
    require_equal_outputs(checkpoint, garden.discriminator_network, garden)
    tf.train.Checkpoint(model=garden, **garden.checkpoint_items).save(
        str(tmp_path / "saved" / "ckpt"))
    checkpoint.text.save(tmp_path / "saved" / "vocab.txt")
    read = pretrained.read(tmp_path / "saved")
    assert read.config.tying is tying
    require_equal_outputs(read, garden.discriminator_network, garden)


def test_a_masked_lm_with_an_output_matrix_of_its_own_is_refused(checkpoint, tmp_path, capsys):
    garden = pretrainer(checkpoint.config, tied=True)
    checkpoint.text.save(tmp_path / "vocab.txt")
    tf.train.Checkpoint(model=garden).save(str(tmp_path / "ckpt"))
    assert pretrained.read(tmp_path).config.tying is Tying.TOKEN_EMBEDDINGS
    assert "8 weights are not used: classification.dense" in capsys.readouterr().err
    garden.masked_lm.embedding_table = tf.Variable(garden.masked_lm.embedding_table + 1.0)
    prefix = tf.train.Checkpoint(model=garden).save(str(tmp_path / "own"))
    with refused("masked_lm/embedding_table is not the generator's word"):
        pretrained.read(storage.path(prefix))


def test_another_network_of_model_garden_is_one_line(checkpoint, tmp_path):
    checkpoint.text.save(tmp_path / "vocab.txt")
    encoder = encoder_of(BertEncoder, checkpoint.config.discriminator)
    prefix = tf.train.Checkpoint(other=encoder).save(str(tmp_path / "other"))
    with refused("holds no encoder of Model Garden"):
        pretrained.read(storage.path(prefix))
    prefix = tf.train.Checkpoint(encoder=encoder).save(str(tmp_path / "encoder"))
    checkpoint = pretrained.read(storage.path(prefix))
    assert not checkpoint.has_discriminator
    np.testing.assert_array_equal(checkpoint.weights["electra/embeddings/word_embeddings"],
                                  encoder.get_embedding_table())

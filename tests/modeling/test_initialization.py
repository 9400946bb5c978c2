"""Attention of the initialized heads, before any training, counted."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import InitializationConfig, ModelConfig, Tying
from electra_tf.core.errors import UserError
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.initialization import OFFSETS, initialize
from electra_tf.modeling.rotary import rotate, rotation
from tests.support import named_arrays

ADJACENT = InitializationConfig(scheme="adjacent")
TINY = ModelConfig(
    vocab_size=300, embedding_size=64, hidden_size=128, num_layers=2, num_heads=2,
    intermediate_size=256, max_position_embeddings=64, generator_width=0.5,
    initializer_range=0.08, hidden_dropout=0.0, attention_dropout=0.0)
LENGTH = 48
MODERN = {"architecture": "modernbert", "positions": "rotary", "embedding_size": 128}


def model_of(config: ModelConfig, initialization: InitializationConfig = ADJACENT,
             seed: int = 1) -> ElectraModel:
    model = ElectraModel(config, seed=seed)
    initialize(model, initialization, cls_id=2)
    return model


def logits_of(encoder: Encoder, ids: np.ndarray, segments=0, layer: int = 0) -> np.ndarray:
    """Returns a layer's attention scores, [B, A, L, L]."""
    ids = tf.constant(ids, tf.int32)
    x = encoder.all_layers(ids, tf.zeros_like(ids) + segments, tf.ones_like(ids, tf.bool))[layer]
    config, network = encoder.config, encoder.encoder_layers[layer]
    joint = (np.split(x @ network.projection.kernel, 3, axis=2)[:2] if config.is_modern
             else [network.attention.query(x), network.attention.key(x)])
    query, key = (np.reshape(part, [*ids.shape, config.num_heads, -1]).swapaxes(1, 2)
                  for part in joint)
    if config.positions == "rotary":
        angles = rotation(ids.shape[1], query.shape[-1], config.rotary_base)
        query, key = (rotate(part, *angles).numpy() for part in (query, key))
    return query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1])


def shares(encoder: Encoder, layer: int = 0) -> np.ndarray:
    """Returns [A], how much of its attention each head gives to the token at its offset."""
    ids = np.random.default_rng(0).integers(5, encoder.config.vocab_size, [4, LENGTH])
    weights = tf.nn.softmax(logits_of(encoder, ids, layer=layer)).numpy()
    at = np.arange(LENGTH)
    measured = []
    for head, offset in zip(range(weights.shape[1]), OFFSETS, strict=False):
        inside = (at + offset >= 0) & (at + offset < LENGTH)
        measured.append(weights[:, head, at[inside], at[inside] + offset].mean())
    return np.array(measured)


@pytest.mark.parametrize("changes", [
    {"initializer_range": 0.02}, {"embedding_size": 63}, {"embedding_size": 128},
    {"num_heads": 1, "tying": Tying.NONE},
    {"hidden_size": 256, "num_heads": 4, "embedding_size": 128, "generator_width": 0.25},
], ids=str)
def test_every_head_attends_nearly_only_to_the_adjacent_token(changes):
    model = model_of(dataclasses.replace(TINY, **changes))
    for network in (model.discriminator, model.generator):
        assert shares(network.encoder).min() > 0.95


def test_words_and_positions_begin_in_dimensions_of_their_own():
    tables = model_of(TINY).discriminator.encoder.embeddings
    words, segments, positions = (
        np.abs(part.table.numpy()) for part in (tables.words, tables.segments, tables.positions))
    assert words[:, :16].max() == segments[:, :16].max() == positions[:, 16:].max() == 0.0
    assert words[:, 16:].mean() > 0.04
    np.testing.assert_allclose(positions.max(), TINY.initializer_range, rtol=1e-3)


@pytest.mark.parametrize("changes", [
    {"position_share": 0.5}, {"position_amplitude": 2.0, "attention_gain": 1.5}], ids=str)
def test_the_logit_at_the_adjacent_token_depends_on_the_gain_alone(changes):
    config = dataclasses.replace(ADJACENT, **changes)
    encoder = model_of(TINY, config).discriminator.encoder
    ids = np.random.default_rng(0).integers(5, 300, [4, LENGTH])
    logits = logits_of(encoder, ids)[:, 0]  # The head that looks back.
    at = np.arange(1, LENGTH)
    # Tokens whose words are shorter than the average have longer waves.
    np.testing.assert_allclose(
        logits[:, at, at - 1].mean(), config.attention_gain**2 * np.sqrt(64) / 2, rtol=0.15)


@pytest.mark.parametrize("changes", [
    {}, {"num_heads": 4}, {"hidden_size": 256, "num_heads": 1}, {"rotary_base": 1e6},
    {"architecture": "modernbert", "embedding_size": 128}], ids=str)
def test_rotary_heads_prefer_their_offset_to_its_neighbours_by_the_gain(changes):
    model = model_of(dataclasses.replace(TINY, positions="rotary", **changes),
                     dataclasses.replace(ADJACENT, attention_gain=3.0))
    at = np.arange(4, LENGTH - 4)
    for network in (model.discriminator, model.generator):
        encoder = network.encoder
        if not encoder.config.is_modern:  # What depends on words has a mean of its own.
            for part in ("query", "key"):
                kernel = getattr(encoder.encoder_layers[0].attention, part).kernel
                kernel.assign(tf.zeros_like(kernel))
        ids = np.random.default_rng(0).integers(5, 300, [64, LENGTH])
        logits = logits_of(encoder, ids).mean(axis=0)
        for head, offset in zip(range(len(logits)), OFFSETS, strict=False):
            at_offset, *neighbours = (logits[head, at, at + offset + more].mean()
                                      for more in (0, -1, 1))
            np.testing.assert_allclose(at_offset - neighbours, 3.0,
                                       rtol=0.35 if encoder.config.is_modern else 1e-4)


def logits_of_pairs(encoder: Encoder, head: int) -> dict[str, float]:
    """Returns mean logits in texts whose words are all different but for one of each segment."""
    size, draw = encoder.config.vocab_size, np.random.default_rng(0)
    ids = np.stack([draw.permutation(np.arange(5, size))[:LENGTH] for _ in range(64)])
    rows, segments = np.arange(len(ids)), np.repeat([[0, 1]], LENGTH // 2, axis=1)
    first = draw.integers(4, LENGTH // 2, len(ids))
    second = draw.integers(LENGTH // 2, LENGTH, len(ids))
    ids[:, 0], ids[rows, second] = 2, ids[rows, first]
    logits = logits_of(encoder, ids, segments)[:, head]
    weights = tf.nn.softmax(logits).numpy()
    at = np.arange(4, LENGTH)
    other = np.ones_like(logits, bool)
    other[:, :, 0] = other[:, range(LENGTH), range(LENGTH)] = False
    other[rows, first, second] = other[rows, second, first] = other[:, :4] = False
    return {"match": np.mean([logits[rows, first, second], logits[rows, second, first]]),
            "itself": logits[:, at, at].mean(), "[CLS]": logits[:, at, 0].mean(),
            "other": logits[other].mean(),
            "share of the match": weights[rows, first, second].mean(),
            "share of [CLS]": np.median(weights[:, at, 0])}


MATCHING = dataclasses.replace(ADJACENT, duplicate_token_heads=2)


@pytest.mark.parametrize("changes", [
    {}, {"embedding_size": 128}, {"num_heads": 4},
    {"hidden_size": 256, "num_heads": 4, "embedding_size": 128},
    {"positions": "rotary"}, {"positions": "rotary", "hidden_size": 256, "num_heads": 4},
    {"positions": "rotary", "embedding_size": 128}, MODERN,
    MODERN | {"hidden_size": 256, "embedding_size": 256, "num_heads": 4}], ids=str)
def test_duplicate_token_heads_attend_to_the_other_segment_or_cls(changes):
    config = dataclasses.replace(TINY, **{"num_heads": 2} | changes)
    encoder = model_of(config, MATCHING).discriminator.encoder
    aim = MATCHING.attention_gain**2 * np.sqrt(config.hidden_size / config.num_heads) / 2
    for head in (-2, -1):
        measured = logits_of_pairs(encoder, head)
        assert measured["match"] == pytest.approx(aim, rel=0.25)
        assert 0.4 * aim < measured["itself"] < 0.7 * aim
        assert measured["[CLS]"] == pytest.approx(0.8 * aim, rel=0.25)
        assert abs(measured["other"]) < 0.2 * aim
        assert measured["share of the match"] > 0.35


def test_heads_that_dont_match_and_the_generator_begin_as_without():
    config = dataclasses.replace(TINY, num_heads=4)
    model, without = model_of(config, MATCHING), model_of(config)
    named_arrays.assert_close(named_arrays.of(model.generator.variables),
                              named_arrays.of(without.generator.variables))
    attention, plain = (network.discriminator.encoder.encoder_layers[0].attention
                        for network in (model, without))
    for name in ("query", "key"):
        kernel, plain_kernel = getattr(attention, name).kernel, getattr(plain, name).kernel
        np.testing.assert_array_equal(kernel[:, :64], plain_kernel[:, :64])
        assert np.abs(kernel[:, 64:] - plain_kernel[:, 64:]).max() > 0.1
    np.testing.assert_array_equal(attention.value.kernel, plain.value.kernel)


@pytest.mark.parametrize("heads, changes, message", [
    (3, {}, "duplicate_token_heads must be at most model.num_heads=2. Received: 3"),
    (1, {"num_heads": 32}, "duplicate_token_heads must be 0 unless"),
    (1, {"embedding_size": 15}, "a head has 8 units or more. Received: 1"),
], ids=str)
def test_heads_that_cant_match_are_refused(heads, changes, message):
    with pytest.raises(UserError, match=re.escape(message)):
        dataclasses.replace(ADJACENT, duplicate_token_heads=heads).require_width(
            dataclasses.replace(TINY, **changes))


def test_the_normal_scheme_changes_nothing():
    before = ElectraModel(TINY, seed=3)
    after = model_of(TINY, InitializationConfig(), seed=3)
    assert shares(after.discriminator.encoder).max() < 2 / LENGTH
    named_arrays.assert_close(named_arrays.of(after.variables), named_arrays.of(before.variables))

"""Weights are as many as published models have, and as many as our networks have."""

import dataclasses

import pytest

from electra_tf.config.model import ModelConfig, Tying
from electra_tf.config.sizes import SIZES
from electra_tf.modeling.parameters import (
    electra_parameters,
    encoder_parameters,
    mlm_parameters,
)

TINY = ModelConfig(vocab_size=50, embedding_size=12, hidden_size=16, num_layers=2, num_heads=2,
                   intermediate_size=40, max_position_embeddings=24, generator_width=0.5)


@pytest.mark.parametrize(("size", "published"), [
    # BERT-Base and BERT-Large have 109,482,240 and 335,141,888 with the pooler, H (H + 1) weights,
    # that ELECTRA's encoders haven't.
    ("base", 109_482_240 - 768 * 769), ("large", 335_141_888 - 1024 * 1025),
    ("small", 13_483_008)])  # By hand: (30,522 + 514 + 2) 128 + 129 256 + 12 x 789,760.
def test_an_encoder_has_what_published_ones_have(size, published):
    assert encoder_parameters(SIZES[size].model.discriminator) == published


@pytest.mark.parametrize("tying", Tying)
@pytest.mark.parametrize("embedding_size", [12, 16])
def test_counts_are_those_of_the_networks(tying, embedding_size):
    from electra_tf.modeling.electra import ElectraModel
    from electra_tf.objectives.objective import count_parameters

    config = dataclasses.replace(TINY, tying=tying, embedding_size=embedding_size)
    model, counted = ElectraModel(config, seed=1), electra_parameters(config)
    assert counted.discriminator == count_parameters(model.discriminator)
    assert counted.generator == count_parameters(model.generator)
    assert counted.trained == count_parameters(model)


def test_a_masked_language_model_is_one_network():
    from electra_tf.modeling.electra import MaskedLanguageModel
    from electra_tf.objectives.objective import count_parameters

    counted = mlm_parameters(TINY)
    assert counted.trained == count_parameters(MaskedLanguageModel(TINY, seed=1))
    assert (counted.generator, counted.shared) == (0, 0)

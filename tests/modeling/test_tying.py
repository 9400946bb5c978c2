import dataclasses

import numpy as np
import pytest

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
    assert shared[Tying.NONE] == set()
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

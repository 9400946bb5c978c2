"""The networks of every objective have the weights of the table, what is tied and what is drawn."""


import numpy as np
import pytest

from electra_tf.config.model import Tying
from electra_tf.config.objectives import OBJECTIVES, objective_class
from electra_tf.config.pretraining import SIZES, PretrainingConfig
from electra_tf.formats.parts import extract
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.pretraining import ObjectiveContext, TrainedGenerator
from tests.support import named_arrays, tiny_run


def built(model):
    """Path -> shape of a model's variables."""
    return {path: value.shape for path, value in named_arrays.of(model.variables).items()}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objectives_networks_have_the_weights_of_its_model(name):
    model = tiny_run.config(model__vocab_size=40).model
    config = PretrainingConfig(model=model, objective=OBJECTIVES[name])
    generator = None
    if name in ("frozen_generator", "two_stage"):
        generator = TrainedGenerator(*extract(Checkpoint(
            source="seeded", config=model, text=None, weights=named_arrays.of(
                ElectraModel(model, seed=1).variables)), "generator"))
    objective = objective_class(config.objective.name)(
        config, ObjectiveContext.placeholder(40, generator=generator))
    networks = objective.network_specs()
    network = objective.build_model(model, seed=1, policy="float32")
    table = {path: shape for network in networks for path, shape in network.weights.items()}
    assert table == built(network)
    assert specs.trained(networks) == sum(
        variable.shape.num_elements() for variable in network.trainable_variables)


@pytest.mark.parametrize("size", [12, 32])
@pytest.mark.parametrize("tying", Tying)
def test_every_way_of_tying_has_its_weights_and_shares_them(tying, size):
    config = tiny_run.config(model__vocab_size=40, model__generator_width=0.5,
                             model__tying=tying, model__embedding_size=size).model
    model = ElectraModel(config, seed=1)
    table = specs.discriminator(config.discriminator).weights
    assert table | specs.own_generator(config) == built(model)
    own, other = (set(built(network)) for network in (model.generator, model.discriminator))
    assert {
        Tying.NONE: own & other == set(),
        Tying.TOKEN_EMBEDDINGS: own & other == {"electra/embeddings/word_embeddings"},
        Tying.ALL_EMBEDDINGS: own & other == set(
            parameter_shapes.embeddings("electra/embeddings", config.discriminator)),
        Tying.EVERYTHING: all("predictions" in name for name in own ^ other)}[tying]


def test_kernels_are_drawn_as_the_reference_draws_them():
    config = tiny_run.config(model__vocab_size=40, model__embedding_size=8, model__num_layers=1,
                             model__hidden_size=256, model__intermediate_size=1024).model
    values = named_arrays.of(ElectraModel(config, seed=1).trainable_variables)
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


@pytest.mark.parametrize(("size", "published"), [
    # BERT-Base and BERT-Large have 109,482,240 and 335,141,888 with the pooler, H (H + 1) weights,
    # that ELECTRA's encoders haven't.
    ("base", 109_482_240 - 768 * 769), ("large", 335_141_888 - 1024 * 1025),
    ("small", 13_483_008)])  # By hand: (30,522 + 514 + 2) 128 + 129 256 + 12 x 789,760.
def test_an_encoder_has_what_published_ones_have(size, published):
    encoder = SIZES[size].model.discriminator
    assert parameter_shapes.size(parameter_shapes.full_encoder(encoder)) == published

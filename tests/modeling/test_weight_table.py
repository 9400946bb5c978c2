"""The table has exactly the weights that the networks of every objective are built with."""

import dataclasses

import pytest

from electra_tf.config.model import Tying
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.sizes import SIZES
from electra_tf.modeling import weight_table
from electra_tf.modeling.electra import ElectraModel
from electra_tf.objectives.objective import GivenGenerator, count_parameters
from electra_tf.objectives.registry import build_objective
from tests import tiny_given, tiny_run

_WITH_GENERATOR = ("frozen_generator", "two_stage")


def built(model):
    """Path -> shape of a model's variables."""
    return {variable.name.split(":")[0]: tuple(variable.shape) for variable in model.variables}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objectives_networks_have_the_weights_of_its_model(name):
    model = tiny_run.config(model__vocab_size=40).model
    config = PretrainingConfig(model=model, objective=OBJECTIVES[name].settings)
    given = tiny_given.of(vocab_size=40)
    if name in _WITH_GENERATOR:
        given = dataclasses.replace(given, generator=GivenGenerator(
            source="seeded", model=model, weights=built_values(model)))
    objective = build_objective(config, given)
    networks = objective.networks()
    network = objective.build_model(model, seed=1, policy="float32")
    table = {path: shape for one in networks for path, shape in one.weights.items()}
    assert table == built(network)
    assert weight_table.trained(networks) == count_parameters(network)


def built_values(model):
    return {variable.name.split(":")[0]: variable.numpy()
            for variable in ElectraModel(model, seed=1).variables}


@pytest.mark.parametrize("tying", Tying)
def test_every_way_of_tying_has_its_weights(tying):
    for embedding_size in (12, 32):
        config = dataclasses.replace(tiny_run.config(model__vocab_size=40).model, tying=tying,
                                     embedding_size=embedding_size)
        found = weight_table.discriminator(config.discriminator).weights
        assert found | weight_table.own_generator(config) == built(ElectraModel(config, seed=1))


@pytest.mark.parametrize(("size", "published"), [
    # BERT-Base and BERT-Large have 109,482,240 and 335,141,888 with the pooler, H (H + 1) weights,
    # that ELECTRA's encoders haven't.
    ("base", 109_482_240 - 768 * 769), ("large", 335_141_888 - 1024 * 1025),
    ("small", 13_483_008)])  # By hand: (30,522 + 514 + 2) 128 + 129 256 + 12 x 789,760.
def test_an_encoder_has_what_published_ones_have(size, published):
    encoder = SIZES[size].model.discriminator
    assert weight_table.size(weight_table.whole_encoder(encoder)) == published

"""The two networks of pre-training: as a Keras model, and joined from the files of each."""

import dataclasses
import re

import numpy as np

from electra_tf.checkpoints.weights import ENCODER, Weights, assign_parts
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.formats.pretrained import GENERATOR_BIAS, Pretrained
from electra_tf.modeling.electra import ElectraModel
from electra_tf.platform.errors import UserError


def build_networks(networks: Pretrained, policy: str = "float32") -> ElectraModel:
    """Returns both networks; the heads that the checkpoint lacks have new weights."""
    config = networks.model
    if not networks.has_generator:  # Its head alone is created, without an encoder.
        config = dataclasses.replace(config, tying=Tying.EVERYTHING)
    model = ElectraModel(config, seed=0, policy=policy)
    assign_parts(model.variables, networks.weights, networks.source)
    return model


def has_energies(networks: Pretrained) -> bool:
    """Returns True if the discriminator returns energies instead of log odds of replacement."""
    return OBJECTIVES[networks.objective].energies


def join_networks(weights: Weights, generator: Weights, source: str) -> Weights:
    """Returns a discriminator's weights and those of its generator that it doesn't share.

    The generator's encoder is named "electra/..." too. Raises `UserError` for embeddings that no
    tying allows.
    """
    paths = ENCODER, f"{ENCODER}embeddings/", f"{ENCODER}embeddings/word_embeddings"
    shared = next((path for path in paths if all(
        name in generator and np.array_equal(generator[name], value)
        for name, value in weights.items() if name.startswith(path))), None)
    if shared is None and f"{ENCODER}embeddings_project/kernel" in generator:
        raise UserError(f"{source}: the generator's word_embeddings isn't the discriminator's; a "
                        "generator with embeddings of its own has embedding_size equal to "
                        "hidden_size.")
    return {**weights, **{re.sub(f"^{ENCODER}", "generator/", name): value
                          for name, value in generator.items()
                          if shared is None or not name.startswith(shared)}}


def infer_generator(model: ModelConfig, weights: Weights, source: str,
                    num_heads: int | None = None) -> ModelConfig:
    """Returns the shape of a discriminator with that of the generator among the weights, if any.

    Raises `UserError` for another number of heads than the generator of this shape has.
    """
    query = "generator/encoder/layer_{}/attention/self/query/bias"
    if query.format(0) not in weights:
        if GENERATOR_BIAS not in weights:
            return model
        return dataclasses.replace(model, tying=Tying.EVERYTHING, generator_width=1.0)
    tying = (Tying.NONE if "generator/embeddings/word_embeddings" in weights else
             Tying.TOKEN_EMBEDDINGS if "generator/embeddings/position_embeddings" in weights else
             Tying.ALL_EMBEDDINGS)
    num_layers = sum(query.format(index) in weights for index in range(1000))
    model = dataclasses.replace(
        model, tying=tying, generator_depth=num_layers / model.num_layers,
        generator_width=weights[query.format(0)].shape[0] / model.hidden_size)
    if num_heads not in (None, model.generator.num_heads):
        raise UserError(f"{source}: the generator's num_heads is {num_heads}; the generator of "
                        f"this discriminator has {model.generator.num_heads}.")
    return model

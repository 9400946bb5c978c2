"""Compares weights with the table of the networks, and finds a network's sizes from its weights."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from electra_tf.checkpoints.weights import Weights
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.modeling.weight_table import Shapes, discriminator, own_generator
from electra_tf.platform.errors import UserError

PUBLISHED_HEADS = {(256, 12): 4, (768, 12): 12, (1024, 24): 16}
"""(Hidden size, layers) of the published models -> attention heads, which no weight tells."""


def has_generator(weights: Weights) -> bool:
    """Tells whether weights hold a generator, or its head at least."""
    return any(name.startswith("generator") for name in weights)


def require_networks(weights: Weights, model: ModelConfig, source: str) -> None:
    """Refuses weights that aren't exactly a discriminator's, or those of it and a generator.

    Raises:
        UserError: names what is missing, left over, or of another shape.
    """
    shapes = discriminator(model.discriminator).weights
    if has_generator(weights):
        shapes |= own_generator(model)
    require_exactly(weights, shapes, source)


def require_exactly(weights: Weights, shapes: Shapes, source: str) -> None:
    """Refuses weights that aren't the ones expected, all of them and no others.

    Raises:
        UserError: names that are missing, left over, or of another shape.
    """
    other = sorted(name for name in shapes.keys() & weights.keys()
                   if tuple(weights[name].shape) != tuple(shapes[name]))
    for problem, names in (("lacks", sorted(shapes.keys() - weights.keys())),
                           ("has no place for", sorted(weights.keys() - shapes.keys())),
                           ("has another shape for", other)):
        if names:
            shown = ", ".join(f"{name} {tuple(weights[name].shape)} instead of {shapes[name]}"
                              if problem.endswith("for") and name in shapes else name
                              for name in names)
            raise UserError(f"{source} {problem} {len(names)} weights: {shown}.")


def require_finite(weights: Weights, source: str) -> None:
    """Refuses weights with a value that is no finite number; `UserError` names the first."""
    for name, value in weights.items():
        if not np.isfinite(value).all():
            raise UserError(f"{source}: {name} holds values that are no finite numbers (of a "
                            "training that diverged, perhaps); take another checkpoint.")


def model_of_weights(weights: Weights, source: str, *, num_heads: int | None = None) -> ModelConfig:
    """Returns the shape of networks from their weights, with or without a generator.

    `num_heads` is the encoder's; a published model's is known by its size.

    Raises:
        UserError: no encoder, sizes that don't go together, or heads that can't be known.
    """
    def shape(name: str) -> tuple[int, ...]:
        if name not in weights:
            raise UserError(f"{source} lacks {name}: it is no ELECTRA checkpoint.")
        found = tuple(weights[name].shape)
        if len(found) != (2 if name.endswith("_embeddings") else 1) or 0 in found:
            raise UserError(f"{source}: {name} can't have the shape {found}; it is no ELECTRA "
                            "checkpoint.")
        return found

    def layers(path: str) -> int:
        return sum(name.startswith(f"{path}/encoder/layer_") and name.endswith("self/query/bias")
                   for name in weights)

    vocab_size, embedding_size = shape("electra/embeddings/word_embeddings")
    hidden_size = shape("electra/encoder/layer_0/attention/self/query/bias")[0]
    generator = {}
    if "generator/encoder/layer_0/attention/self/query/bias" in weights:
        width = shape("generator/encoder/layer_0/attention/self/query/bias")[0] / hidden_size
        generator = {"generator_width": width,
                     "generator_depth": layers("generator") / layers("electra")}
        if "generator/embeddings/word_embeddings" in weights:
            generator["tying"] = Tying.NONE
        elif "generator/embeddings/position_embeddings" in weights:
            generator["tying"] = Tying.TOKEN_EMBEDDINGS
    elif "generator_predictions/output_bias" in weights:
        generator = {"tying": Tying.EVERYTHING, "generator_width": 1.0}
    return ModelConfig(
        vocab_size=vocab_size, embedding_size=embedding_size, hidden_size=hidden_size,
        num_layers=layers("electra"),
        num_heads=num_heads or _published_heads(hidden_size, layers("electra"), source),
        intermediate_size=shape("electra/encoder/layer_0/intermediate/dense/bias")[0],
        max_position_embeddings=shape("electra/embeddings/position_embeddings")[0],
        type_vocab_size=shape("electra/embeddings/token_type_embeddings")[0], **generator)


def with_generator(sizes: Mapping[str, Any], own_sizes: Mapping[str, Any], own: Weights,
                   other: Weights, source: str) -> tuple[ModelConfig, Weights]:
    """Returns the shape of two networks, and the generator's weights that aren't shared.

    Args:
        sizes: settings of `ModelConfig` that describe the discriminator.
        own_sizes: likewise of the generator.
        own: the generator's weights, named as if it were alone: "electra/...".
        other: the discriminator's.
        source: where they come from, for errors.

    Raises:
        UserError: a generator that this discriminator can't have.
    """
    def shared(beginning: str) -> bool:
        return all(name in own and np.array_equal(own[name], value)
                   for name, value in other.items() if name.startswith(beginning))

    tyings = {"electra/": Tying.EVERYTHING, "electra/embeddings/": Tying.ALL_EMBEDDINGS,
              "electra/embeddings/word_embeddings": Tying.TOKEN_EMBEDDINGS}
    tying = next((tying for beginning, tying in tyings.items() if shared(beginning)), Tying.NONE)
    if tying is Tying.NONE and own_sizes["embedding_size"] != own_sizes["hidden_size"]:
        raise UserError(f"{source}: the generator's word_embeddings isn't the discriminator's; a "
                        "generator with embeddings of its own has embedding_size equal to "
                        "hidden_size.")
    model = ModelConfig(
        **sizes, tying=tying,
        generator_width=own_sizes["hidden_size"] / sizes["hidden_size"],
        generator_depth=own_sizes["num_layers"] / sizes["num_layers"])
    for name, found in own_sizes.items():
        if getattr(model.generator, name) != found:
            raise UserError(f"{source}: the generator's {name} is {found}; the generator of this "
                            f"discriminator has {getattr(model.generator, name)}.")
    return model, {name: own[re.sub("^generator/", "electra/", name)]
                   for name in own_generator(model)}


def _published_heads(hidden_size: int, layers: int, source: str) -> int:
    if (hidden_size, layers) not in PUBLISHED_HEADS:
        raise UserError(
            f"{source} doesn't say how many attention heads it has, and {layers} layers of "
            f"{hidden_size} units are no published model's. Convert it: python -m "
            f"electra_tf.apps.tools.convert_checkpoint --from={source} --to=NEW_DIRECTORY "
            "--to_format=run --num_heads=HEADS")
    return PUBLISHED_HEADS[hidden_size, layers]

"""The two networks of pre-training in a model: checks, parts, and what formats share."""

import dataclasses
import re
from collections.abc import Collection

import numpy as np

from electra_tf.checkpoints.checkpoint_files import first_five
from electra_tf.checkpoints.weights import ENCODER, Weights, assign_parts, require_exactly
from electra_tf.config.model import EncoderConfig, ModelConfig, Positions, Tying
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.core.errors import UserError, note_once
from electra_tf.formats.pretrained import GENERATOR_BIAS, Checkpoint
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.electra import ElectraModel, Generator
from electra_tf.modeling.parameter_shapes import GENERATOR, RESTORER
from electra_tf.text.vocabulary import Vocabulary


def build_networks(checkpoint: Checkpoint, policy: str = "float32") -> ElectraModel:
    """Returns both networks; the heads that the checkpoint lacks have new weights."""
    config = checkpoint.config
    if not checkpoint.has_generator:  # Its head alone is created, without an encoder.
        config = dataclasses.replace(config, tying=Tying.EVERYTHING)
    model = ElectraModel(config, seed=0, policy=policy)
    assign_parts(model.variables, checkpoint.weights, checkpoint.source)
    return model


def build_restorer(checkpoint: Checkpoint) -> Generator:
    """Returns the encoder with the head that restores tokens, as a masked language model."""
    _, weights = extract(checkpoint, RESTORER)
    config = dataclasses.replace(checkpoint.config, tying=Tying.EVERYTHING)
    return build_networks(
        dataclasses.replace(checkpoint, config=config, weights=weights)).generator


def has_energies(checkpoint: Checkpoint) -> bool:
    """Returns True if the discriminator returns energies instead of log odds of replacement."""
    return OBJECTIVES[checkpoint.objective].energies


def extract(checkpoint: Checkpoint, network: str) -> tuple[EncoderConfig, Weights]:
    """Returns the encoder's shape of a network, and all its weights.

    It is "discriminator", "generator" or "restorer", which is the discriminator's encoder with a
    generator's head. The weights are named as if there were no other network: the encoder's are
    "electra/...". The head of a discriminator can be missing. Raises `UserError` without a
    generator.
    """
    if network != GENERATOR:
        parts = ENCODER, f"{network}_predictions/"
        return checkpoint.config.discriminator, {
            re.sub(f"^{RESTORER}_", f"{GENERATOR}_", name): value
            for name, value in checkpoint.weights.items() if name.startswith(parts)}
    if not checkpoint.has_generator:
        raise UserError(f"{checkpoint.source} has no generator. Name a run of "
                        "objective.name=electra or mlm.")
    # The generator's own weights and those that it shares; its encoder gets the name "electra/...".
    table = specs.generator(checkpoint.config)
    return table.encoder, {re.sub("^generator/", ENCODER, name): checkpoint.weights[name]
                           for name in table.weights}


def require_networks(checkpoint: Checkpoint) -> None:
    """Raises `UserError` unless a model is a whole encoder, maybe with heads and a generator."""
    parts = {name.split("/")[0] for name in checkpoint.weights}.difference(
        (parameter_shapes.ENCODER, GENERATOR), (
            f"{network}_predictions" for network in ("discriminator", GENERATOR, RESTORER)))
    if parts:
        raise UserError(f"{checkpoint.source} has objective.name={checkpoint.objective}; this "
                        f"format has no place for its {first_five(sorted(parts))}. Use "
                        "--to_format=run.")
    encoder = checkpoint.config.discriminator
    # The encoder, the discriminator's head if there is one, and what the generator doesn't share.
    shapes = (specs.discriminator(encoder).weights if checkpoint.has_discriminator
              else parameter_shapes.full_encoder(encoder))
    if checkpoint.has_generator:
        shapes |= specs.own_generator(checkpoint.config)
    if checkpoint.has_restorer:
        shapes |= parameter_shapes.vocabulary_head(f"{RESTORER}_predictions", encoder)
    require_exactly(checkpoint.weights, shapes, checkpoint.source)


def require_pretrained(checkpoint: Checkpoint) -> None:
    """Raises `UserError` for a model that formats with the paper's networks alone cannot hold."""
    model = checkpoint.config
    if model.positions != Positions.LEARNED:
        name = "architecture" if model.is_modern else "positions"
        raise UserError(f"{checkpoint.source} has model.{name}={getattr(model, name)}; this format "
                        "has tables of positions alone. Use --to_format=hugging_face or run.")
    if checkpoint.task is not None:
        raise UserError(f"{checkpoint.source} is a fine-tuned model; this format holds only "
                        "pre-trained networks.")
    if checkpoint.has_restorer:
        raise UserError(f"{checkpoint.source} has objective.name={checkpoint.objective}, whose "
                        "encoder has a head that predicts tokens; this format has no place for "
                        "it. Use --to_format=hugging_face or run.")
    require_networks(checkpoint)


def join_networks(weights: Weights, generator: Weights, source: str) -> Weights:
    """Returns a discriminator's weights and those of its generator that it doesn't share.

    The generator's encoder is named "electra/..." too. Raises `UserError` for embeddings that no
    tying allows.
    """
    # The largest part that both networks have in common: all, embeddings, word embeddings or none.
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
    # Without an encoder of the generator, the discriminator's has both heads.
    output = "generator/encoder/layer_{}/attention/output/dense/kernel"
    if output.format(0) not in weights:
        if GENERATOR_BIAS not in weights:
            return model
        return dataclasses.replace(model, tying=Tying.EVERYTHING, generator_width=1.0)
    # Its own embeddings tell which ones it shares; a kernel [H, H] tells its width.
    tying = (Tying.NONE if "generator/embeddings/word_embeddings" in weights else
             Tying.TOKEN_EMBEDDINGS if "generator/embeddings/LayerNorm/gamma" in weights else
             Tying.ALL_EMBEDDINGS)
    num_layers = sum(output.format(index) in weights for index in range(1000))
    model = dataclasses.replace(
        model, tying=tying, generator_depth=num_layers / model.num_layers,
        generator_width=weights[output.format(0)].shape[0] / model.hidden_size)
    if num_heads not in (None, model.generator.num_heads):
        raise UserError(f"{source}: the generator's num_heads is {num_heads}; the generator of "
                        f"this discriminator has {model.generator.num_heads}.")
    return model


def note_unused(names: Collection[str], source: str) -> None:
    """Prints a note of weights that aren't used, by the first two parts of their names."""
    if names:
        parts = sorted({".".join(re.split("[./]", name)[:2]) for name in names})
        note_once(f"{source}: {len(names)} {'weights are' if len(names) > 1 else 'weight is'} not "
                  f"used: {first_five(parts)}.")


def drop_padding_rows(model: ModelConfig, weights: Weights, vocabulary: Vocabulary,
                      source: str) -> tuple[ModelConfig, Weights]:
    """Returns a shape and weights without the rows of embeddings beyond the vocabulary.

    A note names them; other programs round the number of rows up. Raises `UserError` if tokens have
    no row.
    """
    rows, size = model.vocab_size, vocabulary.size
    if rows < size:
        raise UserError(f"{vocabulary.source} has {size:,} entries, and the embeddings of {source} "
                        f"{rows:,} rows; put the vocabulary of this network beside it.")
    if rows > size:
        note_once(f"{source}: {rows - size:,} rows of the embeddings have no token in "
                  f"{vocabulary.source} and are left out.")
    return dataclasses.replace(model, vocab_size=size), {
        name: value[:size] if name.endswith(("/word_embeddings", "/output_bias")) else value
        for name, value in weights.items()}

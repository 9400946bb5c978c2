"""Counts the weights of generator and discriminator, and those that they share.

Shapes: V vocabulary, P positions, T segments, E embedding, H hidden, I intermediate.
"""

import dataclasses

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameters:
    """Weights of a pre-training run, biases and layer norms included."""

    discriminator: int
    """Of its encoder and of the head that judges every token."""
    generator: int = 0
    """Of its encoder and of the head that predicts tokens; 0 where there is none."""
    shared: int = 0
    """Counted in both and there once."""

    @property
    def trained(self) -> int:
        """Weights that the optimizer has."""
        return self.discriminator + self.generator - self.shared


def electra_parameters(model: ModelConfig) -> Parameters:
    """Returns the weights of both networks and how many of them are tied (section 3.2)."""
    discriminator, generator = model.discriminator, model.generator
    shared = {
        Tying.NONE: 0,
        Tying.DISENTANGLED: 0,
        Tying.TOKEN_EMBEDDINGS: discriminator.vocab_size * discriminator.embedding_size,
        Tying.ALL_EMBEDDINGS: embedding_parameters(discriminator),
        Tying.EVERYTHING: encoder_parameters(discriminator),
    }
    return Parameters(
        discriminator=encoder_parameters(discriminator) + binary_head_parameters(discriminator),
        generator=encoder_parameters(generator) + mlm_head_parameters(generator),
        shared=shared[model.tying])


def mlm_parameters(model: ModelConfig) -> Parameters:
    """Returns the weights of a masked language model of the discriminator's shape."""
    encoder = model.discriminator
    return Parameters(discriminator=encoder_parameters(encoder) + mlm_head_parameters(encoder))


def encoder_parameters(config: EncoderConfig) -> int:
    """Returns the weights of an encoder: embeddings, their projection and the layers."""
    hidden, inner = config.hidden_size, config.intermediate_size
    project = 0 if config.embedding_size == hidden else (config.embedding_size + 1) * hidden
    attention = 4 * (hidden + 1) * hidden
    feed_forward = (hidden + 1) * inner + (inner + 1) * hidden
    layer_norms = 2 * 2 * hidden
    return embedding_parameters(config) + project + config.num_layers * (
        attention + feed_forward + layer_norms)


def embedding_parameters(config: EncoderConfig) -> int:
    """Returns the weights of word, position and segment vectors and of their layer norm."""
    rows = config.vocab_size + config.max_position_embeddings + config.type_vocab_size
    return (rows + 2) * config.embedding_size


def mlm_head_parameters(config: EncoderConfig) -> int:
    """Returns the weights of the head that predicts tokens, whose table is the word vectors."""
    size = config.embedding_size
    return (config.hidden_size + 1) * size + 2 * size + config.vocab_size


def binary_head_parameters(config: EncoderConfig) -> int:
    """Returns the weights of the head that says whether a token was replaced."""
    return (config.hidden_size + 1) * config.hidden_size + config.hidden_size + 1

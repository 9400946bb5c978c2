"""Counts FLOPs as the ELECTRA paper does (appendix "Compute"), to compare with its tables.

Every operation counts one, a matrix product 2*m*n*k. Embedding look-ups count as products with
one-hot vectors, and the backward pass as much as the forward pass. L is the sequence length.
"""

from collections.abc import Iterable

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.weight_table import Head, Network, discriminator

# Operations per element.
_DROPOUT = 4  # draw, compare, multiply by the mask, multiply by the correction
_LAYER_NORM = 5  # mean, square, sum, bias, scale
_GELU = 8
_SOFTMAX = 5  # maximum, subtract, exponential, sum, divide

SELECTED = 0.15625
"""Predicted positions per token: 20 of 128, whatever the masking rate."""


def per_token(networks: Iterable[Network], length: int) -> float:
    """Returns the training FLOPs per token of an objective's networks.

    Times tokens per batch and steps, this is the "Train FLOPs" column of the paper's tables.
    """
    return sum(network.share * (2 if network.trained else 1) * forward(network, length)
               for network in networks) / length


def forward(network: Network, length: int) -> float:
    """Returns the FLOPs of one forward pass over one sequence of L tokens."""
    config = network.encoder
    encoders = network.towers * (config.num_layers * block(config, length)
                                 + embedding(config, length))
    return encoders + sum(_head(head, config, length) for head in network.heads)


def inference(config: EncoderConfig, length: int) -> float:
    """Returns the FLOPs of one answer about L tokens: the "Infer FLOPs" of table 1 for L = 128.

    It counts an encoder with the discriminator's head, which stands for a task's.
    """
    return forward(discriminator(config), length)


def block(config: EncoderConfig, length: int, *, projected_size: int = 0,
          attentions: int = 1) -> int:
    """Returns the FLOPs of one forward pass of one Transformer block over L tokens.

    The layer norm after attention counts 5 per token and not 5 H: the published numbers do so.

    Args:
        config: of the block's encoder.
        length: L, in tokens.
        projected_size: width of the queries of all heads together (T5); 0 for H.
        attentions: 2 for a decoder's block, which attends to an encoder's L states too.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    projected = projected_size or hidden
    query_key_value = 3 * (2 * hidden + 1) * projected
    # Scores and weighted sum are products; the rest is scale, softmax and dropout of the scores.
    attention = 2 * (projected + hidden) * length + (
        1 + _SOFTMAX + _DROPOUT) * length * config.num_heads
    attention_output = (2 * hidden + 1) * hidden + (_DROPOUT + 1) * hidden + _LAYER_NORM
    intermediate = (2 * hidden + 1 + _GELU) * inner
    output = (2 * inner + 1) * hidden + (_DROPOUT + 1 + _LAYER_NORM) * hidden
    return length * (attentions * (query_key_value + attention + attention_output)
                     + intermediate + output)


def embedding(config: EncoderConfig, length: int) -> int:
    """Returns the FLOPs of embedding L tokens, look-ups counted as one-hot products."""
    size, hidden = config.embedding_size, config.hidden_size
    look_up = 2 * size * config.vocab_size
    position_and_type = 2 * size * (length + 2) + 2 * size
    regularize = (_LAYER_NORM + _DROPOUT) * size
    project = (2 * size + 1) * hidden if size != hidden else 0
    return length * (look_up + position_and_type + regularize + project)


def _head(head: Head, config: EncoderConfig, length: int) -> float:
    """Returns the FLOPs of a head; the last dense layer of one without vocabulary has no bias."""
    kernels = [shape for path, shape in head.weights.items() if path.endswith("/kernel")]
    positions = length * (SELECTED if head.fraction is None else head.fraction)
    if head.scores_vocabulary:
        (inputs, size), = kernels
        vocab = config.vocab_size
        transform = (2 * inputs + 1 + _GELU + _LAYER_NORM) * size
        return positions * (transform + 2 * size * vocab + (_SOFTMAX + 2) * vocab)
    *inner, (inputs, outputs) = kernels
    return positions * (sum((2 * wide + 1 + _GELU) * size for wide, size in inner)
                        + 2 * inputs * outputs)

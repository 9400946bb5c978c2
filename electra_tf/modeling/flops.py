"""Counts floating-point operations (FLOPs) of pre-training, from the shapes of the networks.

Two counts, for two questions:

* `paper_*`: the ELECTRA paper's (appendix "Compute"), to compare with its tables. Every operation
  counts one, a matrix product 2*m*n*k; embedding look-ups count as products with one-hot vectors;
  the backward pass counts as much as the forward pass.
* `matmul_*`: what a device's peak is compared with. Matrix products only, look-ups are free, the
  backward pass costs two forward passes (PaLM, appendix B).

Shapes: L sequence length, H hidden, I intermediate, A heads, E embedding, V vocabulary.
"""

import dataclasses

# Operations per element, as the paper counts them.
_DROPOUT = 4  # draw, compare, multiply by the mask, multiply by the correction
_LAYER_NORM = 5  # mean, square, sum, bias, scale
_GELU = 8
_SOFTMAX = 5  # maximum, subtract, exponential, sum, divide

PAPER_PREDICTED_FRACTION = 0.15625
"""Predicted positions per token in the paper's counts: 20 of 128, whatever the mask rate."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """The sizes of one Transformer encoder that decide its FLOPs.

    Raises:
        ValueError: a size below 1, or a hidden size that the heads do not divide.
    """

    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    embedding_size: int
    vocab_size: int = 30522

    @classmethod
    def of(cls, config) -> "EncoderShape":
        """Returns the sizes of a configuration that has fields of these names."""
        return cls(**{field.name: getattr(config, field.name)
                      for field in dataclasses.fields(cls)})

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise ValueError(f"{field.name} must be at least 1. Received: {value}")
        if self.hidden_size % self.num_heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_heads. Received: {self.hidden_size} "
                f"and {self.num_heads}")


def paper_electra_flops_per_token(
    discriminator: EncoderShape,
    generator: EncoderShape,
    *,
    sequence_length: int,
    predicted_fraction: float = PAPER_PREDICTED_FRACTION,
) -> float:
    """Returns the training FLOPs per token of generator and discriminator, as the paper counts.

    Times tokens per batch and steps, this is the "Train FLOPs" column of the paper's tables.

    Args:
        discriminator: its encoder.
        generator: its encoder; `embedding_size` is the discriminator's when embeddings are tied.
        sequence_length: L, in tokens.
        predicted_fraction: positions that the generator predicts, per token, in (0, 1].
    """
    forward = (
        paper_encoder_flops(discriminator, sequence_length)
        + paper_binary_head_flops(discriminator, sequence_length)
        + paper_encoder_flops(generator, sequence_length)
        + paper_mlm_head_flops(generator, sequence_length, predicted_fraction))
    return 2 * forward / sequence_length


def paper_mlm_flops_per_token(
    encoder: EncoderShape,
    *,
    sequence_length: int,
    predicted_fraction: float = PAPER_PREDICTED_FRACTION,
) -> float:
    """Returns the training FLOPs per token of a masked language model (BERT), as the paper counts.

    Args:
        encoder: its encoder.
        sequence_length: L, in tokens.
        predicted_fraction: predicted positions per token, in (0, 1].
    """
    forward = (
        paper_encoder_flops(encoder, sequence_length)
        + paper_mlm_head_flops(encoder, sequence_length, predicted_fraction))
    return 2 * forward / sequence_length


def paper_encoder_flops(shape: EncoderShape, sequence_length: int) -> int:
    """Returns the FLOPs of one forward pass of an encoder over one sequence of L tokens."""
    return (
        shape.num_layers * paper_block_flops(shape, sequence_length)
        + paper_embedding_flops(shape, sequence_length))


def paper_block_flops(
    shape: EncoderShape, sequence_length: int, *, projected_size: int = 0, attentions: int = 1
) -> int:
    """Returns the FLOPs of one forward pass of one Transformer block over L tokens.

    The layer norm after attention counts 5 per token and not 5 H: the published numbers do so.

    Args:
        shape: of the block's encoder.
        sequence_length: L, in tokens.
        projected_size: width of the queries of all heads together (T5); 0 for H.
        attentions: 2 for a decoder's block, which attends to an encoder's L states too.
    """
    hidden, inner, length = shape.hidden_size, shape.intermediate_size, sequence_length
    projected = projected_size or hidden
    query_key_value = 3 * (2 * hidden + 1) * projected
    # Scores and weighted sum are products; the rest is scale, softmax and dropout of the scores.
    attention = 2 * (projected + hidden) * length + (
        1 + _SOFTMAX + _DROPOUT) * length * shape.num_heads
    attention_output = (2 * hidden + 1) * hidden + (_DROPOUT + 1) * hidden + _LAYER_NORM
    intermediate = (2 * hidden + 1 + _GELU) * inner
    output = (2 * inner + 1) * hidden + (_DROPOUT + 1 + _LAYER_NORM) * hidden
    return length * (attentions * (query_key_value + attention + attention_output)
                     + intermediate + output)


def paper_embedding_flops(shape: EncoderShape, sequence_length: int) -> int:
    """Returns the FLOPs of embedding L tokens, look-ups counted as one-hot products."""
    size, hidden = shape.embedding_size, shape.hidden_size
    look_up = 2 * size * shape.vocab_size
    position_and_type = 2 * size * (sequence_length + 2) + 2 * size
    regularise = (_LAYER_NORM + _DROPOUT) * size
    project = (2 * size + 1) * hidden if size != hidden else 0
    return sequence_length * (look_up + position_and_type + regularise + project)


def paper_mlm_head_flops(
    shape: EncoderShape, sequence_length: int, predicted_fraction: float
) -> float:
    """Returns the forward FLOPs of predicting `predicted_fraction` of L tokens."""
    size, vocab = shape.embedding_size, shape.vocab_size
    transform = (2 * shape.hidden_size + 1 + _GELU + _LAYER_NORM) * size
    predict = 2 * size * vocab + (_SOFTMAX + 2) * vocab
    return predicted_fraction * sequence_length * (transform + predict)


def paper_binary_head_flops(shape: EncoderShape, sequence_length: int) -> int:
    """Returns the forward FLOPs of the discriminator's real-or-replaced head over L tokens."""
    hidden = shape.hidden_size
    return sequence_length * ((2 * hidden + 1 + _GELU) * hidden + 2 * hidden)


def matmul_electra_flops_per_token(
    discriminator: EncoderShape,
    generator: EncoderShape,
    *,
    sequence_length: int,
    predicted_fraction: float,
) -> float:
    """Returns the matrix-product FLOPs per token of one ELECTRA training step.

    Times tokens per second, this over the device's peak is the model FLOPs utilisation.

    Args:
        discriminator: its encoder.
        generator: its encoder.
        sequence_length: L, in tokens.
        predicted_fraction: positions that the generator predicts, per token, in (0, 1].
    """
    return matmul_discriminator_flops_per_token(
        discriminator, sequence_length=sequence_length) + matmul_mlm_flops_per_token(
            generator, sequence_length=sequence_length, predicted_fraction=predicted_fraction)


def matmul_discriminator_flops_per_token(encoder: EncoderShape, *, sequence_length: int) -> float:
    """Returns the matrix-product FLOPs per token of a step of a discriminator alone.

    Args:
        encoder: its encoder.
        sequence_length: L, in tokens.
    """
    binary_head = 2 * encoder.hidden_size * (encoder.hidden_size + 1)
    return 3 * (matmul_encoder_flops_per_token(encoder, sequence_length) + binary_head)


def matmul_mlm_flops_per_token(
    encoder: EncoderShape, *, sequence_length: int, predicted_fraction: float
) -> float:
    """Returns the matrix-product FLOPs per token of a step of a masked language model.

    Args:
        encoder: its encoder.
        sequence_length: L, in tokens.
        predicted_fraction: predicted positions per token, in (0, 1].
    """
    head = 2 * encoder.embedding_size * (encoder.hidden_size + encoder.vocab_size)
    return 3 * (matmul_encoder_flops_per_token(encoder, sequence_length)
                + predicted_fraction * head)


def matmul_encoder_flops_per_token(shape: EncoderShape, sequence_length: int) -> int:
    """Returns the matrix-product FLOPs per token of one forward pass of an encoder."""
    hidden, size = shape.hidden_size, shape.embedding_size
    weights = 4 * hidden * hidden + 2 * hidden * shape.intermediate_size
    block = 2 * weights + 4 * hidden * sequence_length
    project = 2 * size * hidden if size != hidden else 0
    return shape.num_layers * block + project

"""FLOPs of training by two counts, and the peak rates of devices; needs no TensorFlow.

`products_per_token` counts matrix products: look-ups are free and the backward pass costs two
forward passes (PaLM, appendix B). `paper_per_token` counts as the ELECTRA paper does (appendix
"Compute"), to compare with its tables: every operation is one, a matrix product 2*m*n*k, look-ups
are products with one-hot vectors, and the backward pass costs one forward pass.
"""

import re
from collections.abc import Iterable

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.weight_table import Head, Network, Shapes, encoder

# Operations per element by the paper's count.
_DROPOUT = 4  # draw, compare, multiply by the mask, multiply by the correction
_LAYER_NORM = 5  # mean, square, sum, bias, scale
_GELU = 8
_SOFTMAX = 5  # maximum, subtract, exponential, sum, divide
_PAPER_SELECTED = 0.15625
"""Predicted positions per token: 20 of 128, whatever the masking rate."""

PRECISIONS = ("float32", "bfloat16", "float16")
# Matched in order as lower-case parts of the device's name, so the special comes before the
# general. Without structured sparsity, tensor cores accumulating in float32. Sources: NVIDIA's data
# sheets and architecture white papers (V100, Turing T4, A100, A10, Ampere GA102, Ada, L4, L40S,
# H100, H200, HGX B200) and Google Cloud's TPU system architecture pages, per chip.
PEAKS: dict[str, tuple[float | None, ...]] = {
    "b200": (1125.0, 2250.0, 2250.0),
    "h200 nvl": (417.5, 835.5, 835.5),
    "h200": (494.7, 989.4, 989.4),
    "h100 pcie": (378.0, 756.0, 756.0),
    "h100 nvl": (417.5, 835.5, 835.5),
    "h100": (494.7, 989.4, 989.4),
    "a100": (156.0, 312.0, 312.0),
    "l40s": (183.0, 362.0, 362.0),
    "l4": (60.0, 121.0, 121.0),
    "a10": (62.5, 125.0, 125.0),
    "rtx 4090": (82.6, 165.2, 165.2),
    "rtx 3090": (35.6, 71.0, 71.0),
    "v100-pcie": (14.0, None, 112.0),
    "v100": (15.7, None, 125.0),
    "t4": (8.1, None, 65.0),
    "tpu v6e": (918.0, 918.0, None),
    "tpu v5p": (459.0, 459.0, None),
    "tpu v5e": (197.0, 197.0, None),
    "tpu v4": (275.0, 275.0, None),
    "tpu v3": (123.0, 123.0, None),
    "tpu v2": (45.0, 45.0, None),
}
"""Dense peak rates of one device by `PRECISIONS`, in 1e12 FLOP/s; None where it has no such units.

float32 is the rate that TensorFlow gets for float32 products by default: TensorFloat-32 on NVIDIA
Ampere and later, bfloat16 products on TPUs.
"""


def peak_flops(device_name: str, precision: str) -> float | None:
    """Returns a device's peak in FLOP/s, or None for an unknown device.

    `device_name` is the driver's, such as "NVIDIA H100 80GB HBM3", or "TPU v4".
    """
    words = device_name.lower().replace("_", " ")
    for part, peak in PEAKS.items():
        if re.search(rf"(?<![a-z0-9]){part}(?![a-z0-9])", words):  # "l4" is not in "l40s".
            rate = peak[PRECISIONS.index(precision)]
            return None if rate is None else rate * 1e12
    return None


def products_per_token(networks: Iterable[Network], length: int, selected: float) -> float:
    """Returns the matrix-product FLOPs per token of a training step.

    Times tokens per second, this over the device's peak is the model FLOPs utilization. Examples
    have `length` tokens, of which masking selects a fraction.
    """
    def forward(network: Network) -> float:
        heads = (_fraction(head, selected) * (_products(head.weights) + (
            2 * network.encoder.embedding_size * network.encoder.vocab_size
            if head.scores_vocabulary else 0)) for head in network.heads)
        return (_products(network.body) + network.towers * _attention(network.encoder, length)
                + sum(heads))

    return sum(network.share * (3 if network.trained else 1) * forward(network)
               for network in networks)


def encoder_products_per_token(config: EncoderConfig, length: int) -> int:
    """Returns the matrix-product FLOPs per token of one forward pass of an encoder."""
    return _products(encoder("", config)) + _attention(config, length)


def _products(shapes: Shapes) -> int:
    """Returns the FLOPs of multiplying one vector by every kernel."""
    return sum(2 * shape[0] * shape[1] for path, shape in shapes.items()
               if path.endswith("/kernel"))


def _attention(config: EncoderConfig, length: int) -> int:
    """Returns the FLOPs per token of scores and weighted sums, 2 L H each in every layer."""
    return config.num_layers * 4 * config.hidden_size * length


def _fraction(head: Head, selected: float) -> float:
    return selected if head.fraction is None else head.fraction


def paper_per_token(networks: Iterable[Network], length: int) -> float:
    """Returns the training FLOPs per token of an objective's networks by the paper's count.

    Times tokens per batch and steps, this is the "Train FLOPs" column of the paper's tables.
    """
    return sum(network.share * (2 if network.trained else 1) * paper_forward(network, length)
               for network in networks) / length


def paper_forward(network: Network, length: int) -> float:
    """Returns the FLOPs of one forward pass over one sequence of L tokens by the paper's count.

    For a discriminator, whose head stands for a task's, and L = 128 it is table 1's "Infer FLOPs".
    """
    config = network.encoder
    encoders = network.towers * length * (
        config.num_layers * _paper_block(config, length) + _paper_embedding(config, length))
    return encoders + sum(_paper_head(head, config, length) for head in network.heads)


def _paper_block(config: EncoderConfig, length: int) -> int:
    """Returns the FLOPs per token of a Transformer block.

    The layer norm after attention counts 5 per token and not 5 H: the published numbers do so.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    query_key_value = 3 * (2 * hidden + 1) * hidden
    # Scores and weighted sum are products; the rest is scale, softmax and dropout of the scores.
    attention = 4 * hidden * length + (1 + _SOFTMAX + _DROPOUT) * length * config.num_heads
    attention_output = (2 * hidden + 1) * hidden + (_DROPOUT + 1) * hidden + _LAYER_NORM
    intermediate = (2 * hidden + 1 + _GELU) * inner
    output = (2 * inner + 1) * hidden + (_DROPOUT + 1 + _LAYER_NORM) * hidden
    return query_key_value + attention + attention_output + intermediate + output


def _paper_embedding(config: EncoderConfig, length: int) -> int:
    """Returns the FLOPs per token of the embeddings, look-ups counted as one-hot products."""
    size, hidden = config.embedding_size, config.hidden_size
    look_up = 2 * size * config.vocab_size
    position_and_type = 2 * size * (length + 2) + 2 * size
    regularize = (_LAYER_NORM + _DROPOUT) * size
    project = (2 * size + 1) * hidden if size != hidden else 0
    return look_up + position_and_type + regularize + project


def _paper_head(head: Head, config: EncoderConfig, length: int) -> float:
    """Returns the FLOPs of a head; the last dense layer of one without vocabulary has no bias."""
    kernels = [shape for path, shape in head.weights.items() if path.endswith("/kernel")]
    positions = length * _fraction(head, _PAPER_SELECTED)
    if head.scores_vocabulary:
        (inputs, size), = kernels
        vocab = config.vocab_size
        transform = (2 * inputs + 1 + _GELU + _LAYER_NORM) * size
        return positions * (transform + 2 * size * vocab + (_SOFTMAX + 2) * vocab)
    *inner, (inputs, outputs) = kernels
    return positions * (sum((2 * wide + 1 + _GELU) * size for wide, size in inner)
                        + 2 * inputs * outputs)

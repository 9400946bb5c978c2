"""Counts the matrix-product FLOPs of training: what a device's peak rate is compared with.

Look-ups are free and the backward pass costs two forward passes (PaLM, appendix B). The networks
are those of `PretrainingObjective.networks`; `paper_flops` counts them as the paper's tables do.
"""

from collections.abc import Iterable

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.weight_table import Head, Network, Shapes, encoder


def products_per_token(networks: Iterable[Network], length: int, selected: float) -> float:
    """Returns the matrix-product FLOPs per token of a training step.

    Times tokens per second, this over the device's peak is the model FLOPs utilization.

    Args:
        networks: of an objective.
        length: L, tokens of an example.
        selected: fraction of the tokens that masking selects, in (0, 1].
    """
    return sum(network.share * (3 if network.trained else 1)
               * _forward(network, length, selected) for network in networks)


def encoder_products_per_token(config: EncoderConfig, length: int) -> int:
    """Returns the matrix-product FLOPs per token of one forward pass of an encoder."""
    return _products(encoder("", config)) + _attention(config, length)


def _forward(network: Network, length: int, selected: float) -> float:
    return (_products(network.body) + network.towers * _attention(network.encoder, length)
            + sum(_head(head, network.encoder, selected) for head in network.heads))


def _head(head: Head, config: EncoderConfig, selected: float) -> float:
    words = 2 * config.embedding_size * config.vocab_size if head.scores_vocabulary else 0
    fraction = selected if head.fraction is None else head.fraction
    return fraction * (_products(head.weights) + words)


def _products(shapes: Shapes) -> int:
    """Returns the FLOPs of multiplying one vector by every kernel."""
    return sum(2 * shape[0] * shape[1] for path, shape in shapes.items()
               if path.endswith("/kernel"))


def _attention(config: EncoderConfig, length: int) -> int:
    """Returns the FLOPs per token of scores and weighted sums, 2 L H each in every layer."""
    return config.num_layers * 4 * config.hidden_size * length

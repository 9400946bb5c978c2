"""FLOPs of training per token of a workload, by the two counts that tables have."""

import dataclasses

from benchmarks.pretraining.workload import Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import flops, paper_flops, weight_table


def paper_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token as the paper counts them."""
    return paper_flops.per_token(_networks(workload), workload.length)


def product_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token of matrix products alone, attention's included."""
    return flops.products_per_token(
        _networks(workload), workload.length, workload.predictions / workload.length)


def _networks(workload: Workload) -> tuple[weight_table.Network, weight_table.Network]:
    """Returns the discriminator and the generator."""
    discriminator, generator = (EncoderConfig(
        vocab_size=workload.vocab_size, max_position_embeddings=workload.length, type_vocab_size=2,
        hidden_dropout=0.1, attention_dropout=0.1, initializer_range=0.02,
        **dataclasses.asdict(encoder)) for encoder in (workload.discriminator, workload.generator))
    return (weight_table.discriminator(discriminator), weight_table.language_model(
        "generator", generator, weight_table.whole_encoder(generator, "generator")))

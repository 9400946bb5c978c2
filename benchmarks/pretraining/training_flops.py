"""FLOPs of training per token of a workload, by the two counts that tables have."""

import dataclasses

from benchmarks.pretraining.workload import Workload
from electra_tf.modeling import flops


def paper_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token as the paper counts them."""
    return flops.paper_electra_flops_per_token(
        *_shapes(workload), sequence_length=workload.length)


def product_flops_per_token(workload: Workload) -> float:
    """Returns the training FLOPs per token of matrix products alone, attention's included."""
    return flops.matmul_electra_flops_per_token(
        *_shapes(workload), sequence_length=workload.length,
        predicted_fraction=workload.predictions / workload.length)


def _shapes(workload: Workload) -> tuple[flops.EncoderShape, flops.EncoderShape]:
    """Returns the discriminator's and the generator's."""
    return tuple(
        flops.EncoderShape(vocab_size=workload.vocab_size, **dataclasses.asdict(encoder))
        for encoder in (workload.discriminator, workload.generator))

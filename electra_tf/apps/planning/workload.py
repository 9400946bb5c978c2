"""What a pre-training run computes: weights, tokens, and FLOPs by both counts of `flops`."""

import dataclasses

from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling.flops import (
    EncoderShape,
    matmul_electra_flops_per_token,
    matmul_encoder_flops_per_token,
    matmul_mlm_flops_per_token,
    paper_binary_head_flops,
    paper_electra_flops_per_token,
    paper_encoder_flops,
    paper_mlm_flops_per_token,
)
from electra_tf.modeling.parameters import Parameters, electra_parameters, mlm_parameters
from electra_tf.platform.errors import UserError

PUBLISHED_LENGTHS = {"tiny": 128, "small": 128, "base": 512, "large": 512}
"""Model size -> tokens of an example; the paper's (tables 6 and 7), and the longest of tiny."""
_MLM = "mlm"
COUNTED = ("electra", "electra_15", _MLM)
"""Objectives that are counted here: both networks of ELECTRA over all tokens, or BERT's one."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """What a whole pre-training run computes."""

    parameters: Parameters
    tokens: float
    """Batch x length x steps, padding included."""
    sequence_length: int
    paper_per_token: float
    """Training FLOPs per token as the paper counts them."""
    products_per_token: float
    """FLOPs of a training step's matrix products per token."""
    encoder: EncoderShape
    """Of the network that is kept."""

    @classmethod
    def of(cls, config: PretrainingConfig, sequence_length: int) -> "Workload":
        """Returns what a run with these settings computes.

        Args:
            config: its settings; objective, shapes, batch and steps count.
            sequence_length: L, tokens of an example.

        Raises:
            UserError: an objective that isn't counted, or examples longer than the positions.
        """
        model, training, name = config.model, config.training, config.objective.name
        if name not in COUNTED:
            raise UserError(f"the cost of objective.name={name} isn't counted; those of "
                            f"{', '.join(COUNTED)} are.")
        if sequence_length > model.max_position_embeddings:
            raise UserError(
                f"--max_seq_length={sequence_length} is more than the model's "
                f"{model.max_position_embeddings} positions; give --set "
                f"model.max_position_embeddings={sequence_length} too.")
        encoder = EncoderShape.of(model.discriminator)
        fraction = config.masking.max_predictions(sequence_length) / sequence_length
        if name == _MLM:
            paper = paper_mlm_flops_per_token(encoder, sequence_length=sequence_length)
            products = matmul_mlm_flops_per_token(
                encoder, sequence_length=sequence_length, predicted_fraction=fraction)
        else:
            generator = EncoderShape.of(model.generator)
            paper = paper_electra_flops_per_token(
                encoder, generator, sequence_length=sequence_length)
            products = matmul_electra_flops_per_token(
                encoder, generator, sequence_length=sequence_length, predicted_fraction=fraction)
        return cls(
            parameters=(mlm_parameters if name == _MLM else electra_parameters)(model),
            tokens=float(training.train_batch_size * training.num_train_steps * sequence_length),
            sequence_length=sequence_length, paper_per_token=paper, products_per_token=products,
            encoder=encoder)

    @property
    def paper_flops(self) -> float:
        """Training FLOPs of the whole run as the paper counts them: its "Train FLOPs"."""
        return self.paper_per_token * self.tokens

    @property
    def products_flops(self) -> float:
        """FLOPs of the whole run's matrix products: what a device's peak rate is of."""
        return self.products_per_token * self.tokens


def paper_inference_flops(encoder: EncoderShape, sequence_length: int) -> int:
    """Returns the FLOPs of one answer about L tokens, as the paper counts: its "Infer FLOPs".

    The encoder with look-ups as products, and the head of pre-training in the place of a task's;
    the paper's table 1 has L = 128.
    """
    return paper_encoder_flops(encoder, sequence_length) + paper_binary_head_flops(
        encoder, sequence_length)


def matmul_inference_flops(encoder: EncoderShape, sequence_length: int) -> int:
    """Returns the FLOPs of an encoder's matrix products over L tokens, look-ups free, no head."""
    return sequence_length * matmul_encoder_flops_per_token(encoder, sequence_length)

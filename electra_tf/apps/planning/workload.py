"""The computation of a pre-training run: networks, tokens, and FLOPs by both counts."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.modeling import flops
from electra_tf.modeling.weight_table import Network, discriminator
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError

PUBLISHED_LENGTHS = {"tiny": 128, "small": 128, "base": 512, "large": 512}
"""Model size -> tokens of an example; the paper's (tables 6 and 7), and the longest of tiny."""
INFERENCE_LENGTH = 128
"""Tokens of the paper's inference FLOPs (table 1)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """The computation of a whole pre-training run."""

    networks: Sequence[Network]
    """The network that is kept comes first."""
    tokens: float
    """Batch x length x steps, padding included."""
    paper_per_token: float
    """Training FLOPs per token by the paper's count."""
    matmuls_per_token: float
    """FLOPs of a training step's matmuls per token."""

    @classmethod
    def of(cls, config: PretrainingConfig, length: int) -> "Workload":
        """Returns the computation of a run whose examples have `length` tokens.

        Raises:
            UserError: examples longer than the positions, or no generator that the objective needs.
        """
        model, training = config.model, config.training
        if length > model.max_position_embeddings:
            raise UserError(
                f"--max_seq_length={length} is more than the model's "
                f"{model.max_position_embeddings} positions; give --set "
                f"model.max_position_embeddings={length} too.")
        objective = _objective(config)
        networks = objective.networks()
        return cls(
            networks=networks,
            tokens=float(training.train_batch_size * training.num_train_steps * length),
            paper_per_token=flops.paper_per_token(networks, length),
            matmuls_per_token=objective.flops_per_token(length))

    @property
    def paper_flops(self) -> float:
        """Returns the "Train FLOPs" of the paper."""
        return self.paper_per_token * self.tokens

    @property
    def matmul_flops(self) -> float:
        """Returns the FLOPs of all matmuls, which a device's peak refers to."""
        return self.matmuls_per_token * self.tokens

    def inference(self, length: int) -> tuple[float, float]:
        """Returns the FLOPs of one answer about L tokens: the paper's count, and matmuls.

        The first includes the discriminator's head in place of a task's, the second no head.
        """
        encoder = self.networks[0].encoder
        return (flops.paper_forward(discriminator(encoder), length),
                length * flops.encoder_products_per_token(encoder, length))


def _objective(config: PretrainingConfig):
    """Returns a run's objective without records, which describes its networks."""
    # Imported here: TensorFlow takes seconds, which --help does not need.
    from electra_tf.checkpoints import formats
    from electra_tf.modeling.masking import SpecialTokens, TokenKinds
    from electra_tf.objectives.objective import Given, GivenGenerator
    from electra_tf.objectives.registry import build_objective, objective_class

    size = config.model.vocab_size
    kinds = TokenKinds(SpecialTokens(pad=0, cls=1, sep=2, mask=3), size, np.zeros(size, bool))
    generator = None
    directory = config.objective.generator_dir(storage.path("."))
    if directory is not None and not objective_class(config.objective.name).generator_objective:
        found = formats.read(directory)
        generator = GivenGenerator(source=found.source, model=found.model, weights=found.weights)
    return build_objective(config, Given(
        kinds=kinds, token_counts=lambda: np.ones(size, np.int64), generator=generator))

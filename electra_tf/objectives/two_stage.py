"""The generator alone first, then the discriminator from its weights (ELECTRA, section 3.2).

The paper's question: do the networks have to be trained together? The first stage is a masked
language model with the discriminator's network, `objective.generator_part` of the steps; the second
begins with its weights, keeps the generator as it is and trains the discriminator alone. Each has a
schedule of its own. `pretraining/stages.py` runs one after the other.
"""

from electra_tf.modeling.flops import EncoderShape, matmul_mlm_flops_per_token
from electra_tf.objectives.frozen_generator import FrozenGeneratorObjective


class TwoStageObjective(FrozenGeneratorObjective):
    """min L_Disc(discriminator), the second stage; the first is `MlmObjective`."""

    def flops_per_token(self, length: int) -> float:
        """Returns the products of the second stage, as long as there is a generator for it.

        Before that, the mean of both stages: what a whole run costs.
        """
        encoder = self.config.model.discriminator
        second = self.flops_with(encoder, length)
        if self.given.generator is not None:
            return second
        first = matmul_mlm_flops_per_token(
            EncoderShape.of(encoder), sequence_length=length,
            predicted_fraction=self.config.masking.max_predictions(length) / length)
        part = self.config.objective.generator_part
        return part * first + (1.0 - part) * second

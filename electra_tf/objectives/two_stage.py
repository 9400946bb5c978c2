"""The generator alone first, then the discriminator from its weights (ELECTRA, section 3.2).

The paper's question: do the networks have to be trained together? The first stage is a masked
language model with the discriminator's network, `objective.generator_part` of the steps. The
second begins with its weights, keeps the generator as it is and trains the discriminator alone.
Each has a schedule of its own. `pretraining/setup.py` runs one after the other.
"""

import dataclasses
from collections.abc import Sequence

from electra_tf.modeling import weight_table
from electra_tf.modeling.weight_table import Network
from electra_tf.objectives.frozen_generator import FrozenGeneratorObjective


class TwoStageObjective(FrozenGeneratorObjective):
    """min L_Disc(discriminator), the second stage; the first is `generator_objective`."""

    generator_objective = "mlm"

    def networks(self) -> Sequence[Network]:
        """Returns the networks of the second stage once there is a generator for it.

        Before that, those of both stages: a whole run's.
        """
        if self.given.generator is not None:
            return super().networks()
        encoder = self.config.model.discriminator
        first = weight_table.language_model(
            "generator", encoder, weight_table.whole_encoder(encoder))
        part = self.config.objective.generator_part
        return (*(dataclasses.replace(network, share=1.0 - part)
                  for network in self.networks_with(encoder)),
                dataclasses.replace(first, share=part))

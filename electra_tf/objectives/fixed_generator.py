"""Replaced token detection with replacements that no network proposes.

Tokens come from a distribution that knows nothing of the text around them: every entry as likely
as any other, or as often as it stands in the records. Cheap, and easy to see through: what a
generator adds is the difference.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.corruption import BLOCK, IMPOSSIBLE_LOGIT, distribution
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import DiscriminatorModel
from electra_tf.modeling.weight_table import Network
from electra_tf.objectives.detection_scores import detection_scores
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.masked_tokens import MaskedBatch, filled_in
from electra_tf.objectives.objective import Arrays, Given, Outcome, Settings


class FixedGeneratorObjective(ElectraObjective):
    """min L_Disc(discriminator)."""

    def __init__(self, config: Settings, given: Given):
        """Reads the records if they are to be counted."""
        super().__init__(config, given)
        self._logits = replacement_logits(config.objective.replacements, given)

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> DiscriminatorModel:
        """Creates the discriminator."""
        return DiscriminatorModel(config, seed=seed, policy=policy, recompute=recompute)

    def compute(self, model: DiscriminatorModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Draws tokens and runs the discriminator on them."""
        predictions = inputs.masked.predictions
        rows = predictions.positions.shape.num_elements()
        softmax = distribution(tf.tile(self._logits[tf.newaxis], [rows, 1]))
        sampled = self.replacement.sample(softmax, predictions, randomness, training=training)
        judged = self.discriminate(model, inputs, sampled, randomness, training=training)
        return judged._replace(details=judged.details | filled_in(predictions, sampled))

    @property
    def coefficients(self) -> Mapping[str, float]:
        """One loss, its weight as configured."""
        return {"discriminator_loss": self.config.objective.discriminator_loss_weight}

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns how often a draw is right by chance, and the discriminator's scores."""
        valid = details["valid"]
        return {"generator_sampled_accuracy": means["generator_sampled_accuracy"],
                **detection_scores(details["replaced"][valid], details["logits"][valid])}

    def networks(self) -> Sequence[Network]:
        """Returns the discriminator."""
        return (weight_table.discriminator(self.config.model.discriminator),)

    def describe(self, model: DiscriminatorModel) -> str:
        """Returns where the replacements come from."""
        return f"a discriminator of {self.config.objective.replacements} replacements"


def replacement_logits(replacements: str, given: Given) -> np.ndarray:
    """Returns the logits, float32 [V'], that every replacement is drawn by.

    V' is V rounded up to whole blocks. As in the reference implementation, a uniform draw may be a
    special token.
    """
    size = given.kinds.size
    if replacements == "uniform":
        logits = np.zeros(size, np.float32)
    else:
        counts = given.token_counts()
        with np.errstate(divide="ignore"):
            logits = np.maximum(np.log(counts / counts.sum()), IMPOSSIBLE_LOGIT)
    return np.pad(logits.astype(np.float32), [0, -size % BLOCK],
                  constant_values=IMPOSSIBLE_LOGIT)

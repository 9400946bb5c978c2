"""Masked language modelling with the full-size encoder: BERT's objective, for comparison."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import weight_table
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import MaskedLanguageModel
from electra_tf.modeling.weight_table import Network
from electra_tf.objectives.masked_tokens import (
    MaskedBatch,
    best_written,
    count,
    filled_in,
    generator_accuracy,
    run_generator,
)
from electra_tf.objectives.objective import Arrays, Outcome, PretrainingObjective, Written


class MlmObjective(PretrainingObjective):
    """min L_MLM(encoder)."""

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> MaskedLanguageModel:
        """Creates the encoder and its output head."""
        return MaskedLanguageModel(config, seed=seed, policy=policy, recompute=recompute)

    def prepare(self, batch: Batch,
                randomness: Randomness) -> tuple[MaskedBatch, Mapping[str, tf.Tensor]]:
        """Masks the batch; the loss averages over masked tokens."""
        inputs = MaskedBatch(batch, self.replacement.mask(batch.ids, batch.valid, randomness))
        return inputs, {"generator_loss": count(inputs.masked.predictions.valid)}

    def compute(self, model: MaskedLanguageModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Predicts the masked tokens."""
        generated = run_generator(model.generator, inputs, randomness, training=training)
        return Outcome({"generator_loss": tf.reduce_sum(generated.losses)}, {},
                       filled_in(inputs.masked.predictions, generated.best_ids))

    @property
    def coefficients(self) -> Mapping[str, float]:
        """One loss, its weight as configured."""
        return {"generator_loss": self.config.objective.generator_loss_weight}

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns how often the most likely token is the right one."""
        return {"generator_accuracy": generator_accuracy(details)}

    def written(self, details: Arrays) -> Written:
        """Returns the text with the most likely token at every hidden position."""
        return Written(best_written(details))

    def networks(self) -> Sequence[Network]:
        """Returns the encoder with its head."""
        config = self.config.model.discriminator
        return (weight_table.language_model("encoder", config, weight_table.whole_encoder(config)),)

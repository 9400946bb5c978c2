"""Masked language modelling with the full-size encoder: BERT's objective, for comparison."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.pretraining import ObjectiveConfig
from electra_tf.modeling.electra import MaskedLanguageModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.token_replacement import TokenReplacement
from electra_tf.objectives.masked_tokens import MaskedBatch, run_generator
from electra_tf.objectives.objective import Outcome
from electra_tf.records.example import Batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class MlmObjective:
    """min L_MLM(encoder)."""

    replacement: TokenReplacement
    weights: ObjectiveConfig

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> MaskedLanguageModel:
        """Creates the encoder and its output head."""
        return MaskedLanguageModel(config, seed=seed, policy=policy, recompute=recompute)

    def prepare(self, batch: Batch,
                randomness: Randomness) -> tuple[MaskedBatch, Mapping[str, tf.Tensor]]:
        """Masks the batch; the loss averages over masked tokens."""
        inputs = MaskedBatch(batch, self.replacement.mask(batch.ids, batch.valid, randomness))
        valid = tf.cast(inputs.masked.predictions.valid, tf.float32)
        return inputs, {"generator_loss": tf.reduce_sum(valid)}

    def compute(self, model: MaskedLanguageModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Predicts the masked tokens."""
        generated = run_generator(model.generator, inputs, randomness, training=training)
        predictions = inputs.masked.predictions
        return Outcome(
            {"generator_loss": generated.loss_sum}, {},
            {"best_ids": generated.best_ids, "predicted": predictions.valid,
             "original_ids": predictions.original_ids, "positions": predictions.positions},
        )

    @property
    def coefficients(self) -> Mapping[str, float]:
        """One loss, its weight as configured."""
        return {"generator_loss": self.weights.generator_loss_weight}

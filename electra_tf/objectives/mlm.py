"""Masked language modelling with the full-size encoder: BERT's objective, for comparison."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling.electra import MaskedLanguageModel
from electra_tf.modeling.flops import EncoderShape, matmul_mlm_flops_per_token
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.masked_tokens import (
    MaskedBatch,
    best_written,
    count,
    filled_in,
    generator_accuracy,
    run_generator,
)
from electra_tf.objectives.objective import Arrays, Outcome, PretrainingObjective
from electra_tf.objectives.samples import Corruption


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

    def samples(self, details: Arrays, tokens: Sequence[str]) -> list[Corruption]:
        """Returns the most likely token at every hidden position."""
        return Corruption.of_arrays(details, best_written(details), tokens)

    def flops_per_token(self, length: int) -> float:
        """Returns the products of the encoder and its head."""
        return matmul_mlm_flops_per_token(
            EncoderShape.of(self.config.model.discriminator), sequence_length=length,
            predicted_fraction=self.config.masking.max_predictions(length) / length)

"""Replaced token detection, the objective of ELECTRA (section 3.1)."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.config.pretraining import ObjectiveConfig
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.token_replacement import TokenReplacement
from electra_tf.objectives.masked_tokens import MaskedBatch, run_generator, share
from electra_tf.objectives.objective import Outcome, Ratio
from electra_tf.records.example import Batch


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectraObjective:
    """min L_MLM(generator) + 50 L_Disc(discriminator)."""

    replacement: TokenReplacement
    weights: ObjectiveConfig

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> ElectraModel:
        """Creates generator and discriminator."""
        return ElectraModel(config, seed=seed, policy=policy, recompute=recompute)

    def prepare(self, batch: Batch,
                randomness: Randomness) -> tuple[MaskedBatch, Mapping[str, tf.Tensor]]:
        """Masks the batch; the losses average over masked and over all real tokens."""
        inputs = MaskedBatch(batch, self.replacement.mask(batch.ids, batch.valid, randomness))
        return inputs, {
            "generator_loss": _count(inputs.masked.predictions.valid),
            "discriminator_loss": _count(batch.valid),
        }

    def compute(self, model: ElectraModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Runs the generator, samples from it, and runs the discriminator on the samples."""
        generated = run_generator(model.generator, inputs, randomness, training=training)
        sampled = self.replacement.sample(
            generated.softmax, randomness, inputs.masked.predictions.positions.shape)
        return self.discriminate(model, inputs, generated.loss_sum, sampled, generated.best_ids,
                                 randomness, training=training)

    def discriminate(self, model: ElectraModel, inputs: MaskedBatch, generator_loss: tf.Tensor,
                     sampled: tf.Tensor, best: tf.Tensor, randomness: Randomness,
                     *, training: bool) -> Outcome:
        """Writes the samples int32 [B, N] into the original text and detects them."""
        batch, predictions = inputs.original, inputs.masked.predictions
        corrupted, replaced = self.replacement(batch.ids, batch.valid, predictions, sampled)
        logits = model.discriminator(corrupted, batch.segment_ids, batch.valid,
                                     randomness if training else None)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(replaced, tf.float32), logits)
        loss_sum = tf.reduce_sum(losses * tf.cast(batch.valid, tf.float32))
        return Outcome(
            {"generator_loss": generator_loss, "discriminator_loss": loss_sum},
            _measures(sampled == predictions.original_ids, predictions.valid, replaced,
                      logits, batch.valid),
            {"corrupted_ids": corrupted, "replaced": replaced, "logits": logits,
             "valid": batch.valid, "best_ids": best, "predicted": predictions.valid,
             "original_ids": predictions.original_ids, "positions": predictions.positions},
        )

    @property
    def coefficients(self) -> Mapping[str, float]:
        """The paper's weights: 1 and lambda = 50."""
        return {"generator_loss": self.weights.generator_loss_weight,
                "discriminator_loss": self.weights.discriminator_loss_weight}


def _measures(right: tf.Tensor, predicted: tf.Tensor, replaced: tf.Tensor, logits: tf.Tensor,
              valid: tf.Tensor) -> Mapping[str, Ratio]:
    flagged = logits > 0.0
    real, count = tf.where(valid, logits, 0.0), _count(valid)
    return {
        "generator_sampled_accuracy": share(right, predicted),
        "discriminator_accuracy": share(flagged == replaced, valid),
        "discriminator_precision": share(replaced, flagged & valid),
        "discriminator_recall": share(flagged, replaced),
        "replaced_fraction": share(replaced, valid),
        "discriminator_logit": Ratio(tf.reduce_sum(real), count),
        "discriminator_logit_squared": Ratio(tf.reduce_sum(tf.square(real)), count),
    }


def _count(marked: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(marked, tf.float32))

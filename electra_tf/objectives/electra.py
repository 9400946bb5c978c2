"""Replaced token detection, the objective of ELECTRA (section 3.1), and ELECTRA 15 %."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
from sklearn import metrics

from electra_tf.data.example import Batch
from electra_tf.modeling import network_specs
from electra_tf.modeling.corruption import corrupt
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.masking import mark_positions
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.objective import Outcome, Ratio, count, share
from electra_tf.objectives.pretraining import (
    Arrays,
    DisplayedText,
    MaskedBatch,
    PretrainingObjective,
    generator_accuracy,
    generator_details,
    run_generator,
)


class ElectraObjective(PretrainingObjective):
    """Replaced token detection: min L_MLM(generator) + 50 L_Disc(discriminator)."""

    networks_class = ElectraModel
    losses = ("generator_loss", "discriminator_loss")

    def num_terms(self, inputs: MaskedBatch) -> Mapping[str, tf.Tensor]:
        """Returns how many tokens the discriminator's loss counts, and masked ones for others."""
        return {**super().num_terms(inputs), "discriminator_loss": count(self.loss_mask(inputs))}

    def loss_mask(self, inputs: MaskedBatch) -> tf.Tensor:
        """Marks the tokens that the discriminator's loss averages over, bool [B, L]: all."""
        return inputs.original.valid

    def compute(self, model: ElectraModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Runs the generator, samples from it, and runs the discriminator on the samples."""
        masked = inputs.masked
        generated = run_generator(model.generator, inputs, randomness, training=training)
        sampled = self.sample(generated.softmax, masked, randomness)
        outcome = self.discriminate(model, inputs, sampled, randomness, training=training)
        return Outcome(
            {"generator_loss": tf.reduce_sum(generated.losses)} | outcome.loss_sums,
            outcome.measures, outcome.details | generator_details(masked, generated.best_ids))

    def discriminate(self, model: ElectraModel, inputs: MaskedBatch, sampled: tf.Tensor,
                     randomness: Randomness, *, training: bool) -> Outcome:
        """Writes the samples int32 [B, N] into the original text and detects them."""
        batch, masked = inputs.original, inputs.masked
        corrupted, replaced = corrupt(batch.ids, batch.valid, masked, sampled)
        logits = model.discriminator(corrupted, batch.segment_ids, batch.valid,
                                     randomness if training else None)
        return self.detection_outcome(inputs, sampled, corrupted, replaced, logits)

    def detection_outcome(self, inputs: MaskedBatch, sampled: tf.Tensor, corrupted: tf.Tensor,
                          replaced: tf.Tensor, logits: tf.Tensor) -> Outcome:
        """Computes the loss of logits float32 [B, L] for the labels `replaced`, bool [B, L]."""
        valid, masked = inputs.original.valid, inputs.masked
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(replaced, tf.float32), logits)
        loss_sum = tf.reduce_sum(losses * tf.cast(self.loss_mask(inputs), tf.float32))
        correct = sampled == masked.original_ids
        flagged = logits > 0.0
        valid_logits, tokens = tf.where(valid, logits, 0.0), count(valid)
        measures = {
            "generator_sampled_accuracy": share(correct, masked.valid),
            "discriminator_accuracy": share(flagged == replaced, valid),
            "discriminator_precision": share(replaced, flagged & valid),
            "discriminator_recall": share(flagged, replaced),
            "replaced_fraction": share(replaced, valid),
            "discriminator_logit": Ratio(tf.reduce_sum(valid_logits), tokens),
            "discriminator_logit_squared": Ratio(tf.reduce_sum(tf.square(valid_logits)), tokens)}
        return Outcome({"discriminator_loss": loss_sum}, measures,
                       {"corrupted_ids": corrupted, "replaced": replaced, "logits": logits})

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the generator's accuracies and the discriminator's scores over all tokens."""
        valid = details["valid"]
        return {"generator_accuracy": generator_accuracy(details),
                "generator_sampled_accuracy": means["generator_sampled_accuracy"],
                **detection_scores(details["replaced"][valid], details["logits"][valid])}

    def detection_logits(self, model: ElectraModel, batch: Batch) -> tf.Tensor:
        """Returns the discriminator's logits, float32 [B, L]."""
        return model.discriminator(batch.ids, batch.segment_ids, batch.valid)

    def displayed_text(self, details: Arrays) -> DisplayedText:
        """Returns the corrupted text and the discriminator's probabilities."""
        return DisplayedText(details["corrupted_ids"], 1.0 / (1.0 + np.exp(-details["logits"])))

    def networks(self) -> Sequence[network_specs.NetworkSpec]:
        """Returns the discriminator and the generator."""
        model = self.config.model
        return (network_specs.discriminator(model.discriminator), network_specs.generator(model))


class Electra15Objective(ElectraObjective):
    """ELECTRA with L_Disc over the selected positions alone (section 3.4).

    It measures how much of ELECTRA's gain comes from a loss over all tokens. The discriminator
    reads the whole text.
    """

    def loss_mask(self, inputs: MaskedBatch) -> tf.Tensor:
        """Marks the selected positions, bool [B, L]."""
        masked = inputs.masked
        return mark_positions(
            masked.positions, masked.valid, inputs.original.ids.shape[1])


def detection_scores(replaced: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """Returns the discriminator's scores over T valid tokens, all in [0, 1].

    `replaced` bool [T] is the truth; a token with a positive logit, float [T], is flagged as
    replaced. The area under the ROC curve is NaN if only one class occurs. `_recall_at_p90` is the
    highest recall of a threshold with a precision of 0.9 or more; 0 without such a threshold.
    """
    precision, recall, _ = metrics.precision_recall_curve(replaced, logits)
    return {
        "discriminator_accuracy": float(metrics.accuracy_score(replaced, logits > 0.0)),
        **ranking_scores(replaced, logits, "discriminator"),
        "discriminator_recall_at_p90": (
            float(recall[precision >= 0.9].max()) if replaced.any() else np.nan),
        "replaced_fraction": float(np.mean(replaced)),
    }


def ranking_scores(replaced: np.ndarray, logits: np.ndarray, name: str) -> dict[str, float]:
    """Returns `name`_precision, _recall and _auc; arguments as for `detection_scores`."""
    flagged = logits > 0.0
    both = replaced.any() and not replaced.all()
    return {
        f"{name}_precision": float(metrics.precision_score(replaced, flagged, zero_division=0.0)),
        f"{name}_recall": float(metrics.recall_score(replaced, flagged, zero_division=0.0)),
        f"{name}_auc": float(metrics.roc_auc_score(replaced, logits)) if both else np.nan,
    }

"""Replaced token detection, the objective of ELECTRA (section 3.1), and its variants."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.corruption import corrupt
from electra_tf.modeling.electra import ElectraModel, MaskedLanguageModelHead, gather_vectors
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.masking import mark_positions
from electra_tf.modeling.parameter_shapes import RESTORER
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.objective import LossOutput, WeightedMean, count, fraction
from electra_tf.objectives.pretraining import (
    Arrays,
    MaskedBatch,
    PretrainingObjective,
    generator_fields,
    run_generator,
    score_predictions,
    token_accuracy,
)


class ElectraObjective(PretrainingObjective):
    """Replaced token detection: min L_MLM(generator) + 50 L_Disc(discriminator)."""

    model_class = ElectraModel
    losses = ("generator_loss", "discriminator_loss")

    def denominators(self, inputs: MaskedBatch) -> Mapping[str, tf.Tensor]:
        """Returns how many tokens the discriminator's loss counts, and masked ones for others."""
        return {**super().denominators(inputs), "discriminator_loss": count(self.loss_mask(inputs))}

    def loss_mask(self, inputs: MaskedBatch) -> tf.Tensor:
        """Marks the tokens that the discriminator's loss averages over, bool [B, L]: all."""
        return inputs.original.padding_mask

    def compute(self, model: ElectraModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Runs the generator, samples from it, and runs the discriminator on the samples."""
        # The generator predicts the masked tokens; a sample of each replaces it.
        masked = inputs.masked
        generated = run_generator(model.generator, inputs, rng, training=training)
        sampled = self.sample(generated.softmax, masked, rng, training=training)

        # The discriminator reads the corrupted text; the losses have separate sums.
        output = self.discriminate(model, inputs, sampled, rng, training=training)
        return LossOutput(
            loss_sums={"generator_loss": tf.reduce_sum(generated.losses)} | output.loss_sums,
            metrics=output.metrics,
            per_example=output.per_example | generator_fields(masked, generated.best_ids))

    def discriminate(self, model: ElectraModel, inputs: MaskedBatch, sampled: tf.Tensor,
                     rng: Rng, *, training: bool) -> LossOutput:
        """Writes the samples int32 [B, N] into the original text and detects them."""
        batch, masked = inputs.original, inputs.masked
        corrupted, replaced = corrupt(batch.ids, batch.padding_mask, masked, sampled)
        logits = model.discriminator(corrupted, batch.segment_ids, batch.padding_mask,
                                     rng if training else None)
        return self.detection_output(inputs, sampled, corrupted, replaced, logits)

    def detection_output(self, inputs: MaskedBatch, sampled: tf.Tensor, corrupted: tf.Tensor,
                         replaced: tf.Tensor, logits: tf.Tensor) -> LossOutput:
        """Computes the loss of logits float32 [B, L] for the labels `replaced`, bool [B, L]."""
        # L_Disc: the binary cross entropy of every token, float32 [B, L], summed where it counts.
        padding_mask, masked = inputs.original.padding_mask, inputs.masked
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(replaced, tf.float32), logits)
        loss_sum = tf.reduce_sum(losses * tf.cast(self.loss_mask(inputs), tf.float32))

        # A positive logit flags a token as replaced. The logits' mean and mean square show a
        # discriminator whose logits have become equal.
        correct = sampled == masked.original_ids
        flagged = logits > 0.0
        valid_logits, tokens = tf.where(padding_mask, logits, 0.0), count(padding_mask)
        metrics = {
            "generator_sampled_accuracy": fraction(correct, masked.filled),
            "discriminator_accuracy": fraction(flagged == replaced, padding_mask),
            "discriminator_precision": fraction(replaced, flagged & padding_mask),
            "discriminator_recall": fraction(flagged, replaced),
            "replaced_fraction": fraction(replaced, padding_mask),
            "discriminator_logit": WeightedMean(tf.reduce_sum(valid_logits), tokens),
            "discriminator_logit_squared": WeightedMean(tf.reduce_sum(tf.square(valid_logits)),
                                                        tokens)}
        return LossOutput(
            loss_sums={"discriminator_loss": loss_sum}, metrics=metrics,
            per_example={"corrupted_ids": corrupted, "replaced": replaced, "logits": logits})

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the generator's accuracies and the discriminator's scores over all tokens."""
        padding_mask = per_example["padding_mask"]
        return {"generator_accuracy": token_accuracy(per_example),
                "generator_sampled_accuracy": means["generator_sampled_accuracy"],
                **detection_scores(per_example["replaced"][padding_mask],
                                   per_example["logits"][padding_mask])}

    def detection_logits(self, model: ElectraModel, batch: Batch) -> tf.Tensor:
        """Returns the discriminator's logits, float32 [B, L]."""
        return model.discriminator(batch.ids, batch.segment_ids, batch.padding_mask)

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator and the generator."""
        model = self.config.model
        return (specs.discriminator(model.discriminator), specs.generator(model))


class Electra15Objective(ElectraObjective):
    """ELECTRA with L_Disc over the selected positions alone (section 3.4).

    It measures how much of ELECTRA's gain comes from a loss over all tokens. The discriminator
    reads the whole text.
    """

    def loss_mask(self, inputs: MaskedBatch) -> tf.Tensor:
        """Marks the selected positions, bool [B, L]."""
        masked = inputs.masked
        return mark_positions(masked.positions, masked.filled, inputs.original.ids.shape[1])


class ElectraLmModel(ElectraModel):
    """A generator, and a discriminator with a second head, which predicts original tokens."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        super()._create(config, options)
        encoder = self.discriminator.encoder
        self.restorer_head = MaskedLanguageModelHead(
            f"{RESTORER}_predictions", encoder.config, options, encoder.embeddings.words)


class ElectraLmObjective(ElectraObjective):
    """ELECTRA + LM: min L_MLM(generator) + 50 L_Disc(discriminator) + L_LM(discriminator).

    The discriminator's vectors of the corrupted text also predict the original tokens at the
    selected positions, as in COCO-LM's corrective language modelling (Meng et al., 2021), without
    its copy mechanism. The head is the generator's, of the discriminator's size.
    """

    model_class = ElectraLmModel
    losses = ("generator_loss", "discriminator_loss", "restoring_loss")

    def discriminate(self, model: ElectraLmModel, inputs: MaskedBatch, sampled: tf.Tensor,
                     rng: Rng, *, training: bool) -> LossOutput:
        """Detects the samples int32 [B, N], and predicts the tokens that they replaced.

        "restored_ids" int32 [B, N] are the most likely ones.
        """
        # One pass over the corrupted text, [B, L, H], for both heads.
        batch, masked = inputs.original, inputs.masked
        corrupted, replaced = corrupt(batch.ids, batch.padding_mask, masked, sampled)
        hidden = model.discriminator.encode(corrupted, batch.segment_ids, batch.padding_mask,
                                            rng if training else None)
        output = self.detection_output(inputs, sampled, corrupted, replaced,
                                       model.discriminator.head(hidden))

        # L_LM: -log p(original token) at the selected positions, whether replaced or not.
        restored = score_predictions(
            model.restorer_head(gather_vectors(hidden, masked.positions)), masked,
            training=training)
        return output._replace(
            loss_sums=output.loss_sums | {"restoring_loss": tf.reduce_sum(restored.losses)},
            per_example=output.per_example | {"restored_ids": restored.best_ids})

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns ELECTRA's scores, and the head's accuracy on selected and on replaced tokens."""
        replaced = np.take_along_axis(per_example["replaced"], per_example["positions"], axis=1)
        return super().scores(per_example, means) | {
            "restoring_accuracy": token_accuracy(per_example, "restored_ids"),
            "restoring_accuracy_replaced": token_accuracy(
                {**per_example, "predicted": per_example["predicted"] & replaced},
                "restored_ids")}

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator with both heads, and the generator."""
        discriminator, generator = super().network_specs()
        head = specs.Head(scores_vocabulary=True, fraction=None,
                          weights=parameter_shapes.vocabulary_head(
                              f"{RESTORER}_predictions", discriminator.encoder))
        return dataclasses.replace(
            discriminator, heads=(*discriminator.heads, head)), generator


def detection_scores(replaced: np.ndarray, logits: np.ndarray) -> dict[str, float]:
    """Returns the discriminator's scores over T valid tokens, all in [0, 1].

    `replaced` bool [T] is the truth; a token with a positive logit, float [T], is flagged as
    replaced. The area under the ROC curve is NaN if only one class occurs. `_recall_at_p90` is the
    highest recall of a threshold with a precision of 0.9 or more; 0 without such a threshold.
    """
    from sklearn import metrics  # Takes a second to import, which the first step need not wait for.

    # At every threshold; the last point has precision 1 and recall 0, so the maximum exists.
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
    from sklearn import metrics

    flagged = logits > 0.0
    both = replaced.any() and not replaced.all()
    return {
        f"{name}_precision": float(metrics.precision_score(replaced, flagged, zero_division=0.0)),
        f"{name}_recall": float(metrics.recall_score(replaced, flagged, zero_division=0.0)),
        f"{name}_auc": float(metrics.roc_auc_score(replaced, logits)) if both else np.nan,
    }

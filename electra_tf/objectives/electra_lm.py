"""Replaced token detection, and a masked language model on the same encoder.

The discriminator's vectors of the corrupted text also predict the original tokens at the selected
positions, as in COCO-LM's corrective language modelling (Meng et al., 2021), without its copy
mechanism. The head is the generator's, of the discriminator's size.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.corruption import corrupt
from electra_tf.modeling.electra import ElectraModel, MaskedLanguageModelHead, gather_vectors
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.parameter_shapes import RESTORER
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.objective import LossOutput
from electra_tf.objectives.pretraining import (
    Arrays,
    MaskedBatch,
    generator_accuracy,
    score_predictions,
)


class ElectraLmModel(ElectraModel):
    """A generator, and a discriminator with a second head, which predicts original tokens."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        super()._create(config, options)
        encoder = self.discriminator.encoder
        self.restorer_head = MaskedLanguageModelHead(
            f"{RESTORER}_predictions", encoder.config, options, encoder.embeddings.words)


class ElectraLmObjective(ElectraObjective):
    """ELECTRA + LM: min L_MLM(generator) + 50 L_Disc(discriminator) + L_LM(discriminator)."""

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
        selected = {**per_example, "best_ids": per_example["restored_ids"]}
        replaced = np.take_along_axis(per_example["replaced"], per_example["positions"], axis=1)
        return super().scores(per_example, means) | {
            "restoring_accuracy": generator_accuracy(selected),
            "restoring_accuracy_replaced": generator_accuracy(
                {**selected, "predicted": per_example["predicted"] & replaced})}

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator with both heads, and the generator."""
        discriminator, generator = super().network_specs()
        head = specs.Head(scores_vocabulary=True, fraction=None,
                          weights=parameter_shapes.vocabulary_head(
                              f"{RESTORER}_predictions", discriminator.encoder))
        return dataclasses.replace(
            discriminator, heads=(*discriminator.heads, head)), generator

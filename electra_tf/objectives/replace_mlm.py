"""Replace MLM: masked language modelling on tokens that a generator wrote (section 3.4).

The paper's question: how much of ELECTRA's gain comes from never showing the encoder a [MASK],
which fine-tuning doesn't either?
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import weight_table
from electra_tf.modeling.corruption import Corrupted
from electra_tf.modeling.masking import Masked
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import RestoringModel
from electra_tf.modeling.weight_table import COPY, RESTORER, Network
from electra_tf.objectives.masked_tokens import (
    MaskedBatch,
    best_written,
    count,
    filled_in,
    generator_accuracy,
    run_generator,
    share,
)
from electra_tf.objectives.objective import (
    Arrays,
    Outcome,
    PretrainingObjective,
    Written,
    count_parameters,
)


class ReplaceMlmObjective(PretrainingObjective):
    """min L_MLM(generator) + L_MLM(encoder, which reads samples instead of [MASK])."""

    copies = False
    """Whether the encoder has a second head."""
    loss = "restoring_loss"
    restored_fraction: float | None = None
    """Fraction of positions that the encoder predicts; None for those that masking selects."""

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> RestoringModel:
        """Creates generator and restorer."""
        return RestoringModel(
            config, copies=self.copies, seed=seed, policy=policy, recompute=recompute)

    def prepare(self, batch: Batch,
                randomness: Randomness) -> tuple[MaskedBatch, Mapping[str, tf.Tensor]]:
        """Masks the batch; the losses average over masked and over restored tokens."""
        inputs = MaskedBatch(batch, self.replacement.mask(batch.ids, batch.valid, randomness))
        return inputs, {"generator_loss": count(inputs.masked.predictions.valid),
                        self.loss: self.restored(inputs)}

    def restored(self, inputs: MaskedBatch) -> tf.Tensor:
        """Returns the number of tokens, float32 [], that the encoder's loss averages over."""
        return count(inputs.masked.predictions.valid)

    def compute(self, model: RestoringModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Runs the generator, samples from it, and predicts what stood there."""
        batch, predictions = inputs.original, inputs.masked.predictions
        generated = run_generator(model.generator, inputs, randomness, training=training)
        sampled = self.replacement.sample(
            generated.softmax, predictions, randomness, training=training)
        corrupted = self.replacement(batch.ids, batch.valid, predictions, sampled)
        restored = self.restore(model, inputs, corrupted, randomness, training=training)
        return Outcome(
            {"generator_loss": tf.reduce_sum(generated.losses)} | restored.loss_sums,
            {"generator_sampled_accuracy": share(
                sampled == predictions.original_ids, predictions.valid),
             "replaced_fraction": share(corrupted.replaced, batch.valid)},
            filled_in(predictions, generated.best_ids) | restored.details)

    def restore(self, model: RestoringModel, inputs: MaskedBatch, corrupted: Corrupted,
                randomness: Randomness, *, training: bool) -> Outcome:
        """Predicts the selected tokens; "restored_ids" int32 [B, N] are the best guesses."""
        read = MaskedBatch(inputs.original, Masked(corrupted.ids, inputs.masked.predictions))
        predicted = run_generator(model.restorer, read, randomness, training=training)
        return Outcome({self.loss: tf.reduce_sum(predicted.losses)}, {},
                       {"restored_ids": predicted.best_ids})

    @property
    def coefficients(self) -> Mapping[str, float]:
        """Weights as configured; the paper gives none."""
        return {"generator_loss": self.config.objective.generator_loss_weight,
                self.loss: self.config.objective.restoring_loss_weight}

    def scores(self, details: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns how often generator and restorer find the selected tokens."""
        return {"generator_accuracy": generator_accuracy(details),
                "generator_sampled_accuracy": means["generator_sampled_accuracy"],
                "restoring_accuracy": generator_accuracy(_as_best(details))}

    def written(self, details: Arrays) -> Written:
        """Returns the text with the restorer's guesses at the selected positions."""
        return Written(best_written(_as_best(details)))

    def networks(self) -> Sequence[Network]:
        """Returns the encoder that is kept and the generator."""
        config = self.config.model.discriminator
        restorer = weight_table.language_model(
            "encoder", config, weight_table.whole_encoder(config),
            head=f"{RESTORER}_predictions", fraction=self.restored_fraction)
        if self.copies:
            copying = weight_table.Head(
                weights=weight_table.binary_head(COPY, config), scores_vocabulary=False)
            restorer = dataclasses.replace(restorer, heads=(*restorer.heads, copying))
        return restorer, weight_table.generator(self.config.model)

    def describe(self, model: RestoringModel) -> str:
        """Returns the size of the encoder that is kept."""
        return f"encoder {count_parameters(model.restorer.encoder):,}, the rest heads and generator"


def _as_best(details: Arrays) -> dict[str, np.ndarray]:
    """Returns the details with the restorer's guesses in place of the generator's."""
    return {**details, "best_ids": details["restored_ids"]}

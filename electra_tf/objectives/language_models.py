"""Objectives whose encoder predicts tokens: BERT's, and two between BERT and ELECTRA (section 3.4).

Replace MLM reads a generator's samples instead of [MASK], which fine-tuning doesn't contain. It
measures how much of ELECTRA's gain comes from that.

All-Tokens MLM predicts every token of such a text. Most are the original ones, so the encoder may
copy: with D the probability of copying, from a sigmoid, p(x_t) = D [x_t is the token that was read]
+ (1 - D) softmax(x_t).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.corruption import Corrupted, corrupt
from electra_tf.modeling.electra import (
    Generator,
    PretrainingModel,
    ReplacedTokenHead,
    both_encoders,
)
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.masking import MaskedPositions, gather_at
from electra_tf.modeling.parameter_shapes import RESTORER
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.objective import LossOutput, count, fraction
from electra_tf.objectives.pretraining import (
    Arrays,
    MaskedBatch,
    PretrainingObjective,
    generator_fields,
    run_generator,
    score_predictions,
    token_accuracy,
)

COPY = "copy_predictions"  # First part of the paths of the head that copies a token.


class MaskedLanguageModel(PretrainingModel):
    """BERT's masked language model: a full-size encoder and a head that predicts tokens."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        self.generator = Generator(create_encoder(config.discriminator, options), options)


class MlmObjective(PretrainingObjective):
    """BERT's objective: min L_MLM(encoder)."""

    model_class = MaskedLanguageModel
    losses = ("generator_loss",)

    def compute(self, model: MaskedLanguageModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Predicts the masked tokens."""
        generated = run_generator(model.generator, inputs, rng, training=training)
        return LossOutput(
            loss_sums={"generator_loss": tf.reduce_sum(generated.losses)}, metrics={},
            per_example=generator_fields(inputs.masked, generated.best_ids))

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the accuracy of the most likely tokens."""
        return {"generator_accuracy": token_accuracy(per_example)}

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the encoder with its head."""
        config = self.config.model.discriminator
        return (specs.language_model("encoder", config, parameter_shapes.full_encoder(config)),)


class RestoringModel(PretrainingModel):
    """A generator, and an encoder that predicts the tokens that it replaced (section 3.4)."""

    copies: ClassVar[bool] = False
    """True if the encoder has a head with the logits of not copying a token."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        encoder, generator = both_encoders(config, options)
        self.restorer = Generator(encoder, options, RESTORER)
        self.copying = ReplacedTokenHead(COPY, encoder.config, options) if self.copies else None
        self.generator = Generator(generator, options)


class CopyingModel(RestoringModel):
    """A `RestoringModel` whose encoder may copy tokens."""

    copies = True


class ReplaceMlmObjective(PretrainingObjective):
    """Replace MLM: min L_MLM(generator) + L_MLM(encoder), which reads samples for [MASK]."""

    model_class = RestoringModel
    losses = ("generator_loss", "restoring_loss")  # The second is the encoder's.
    restored_fraction: ClassVar[float | None] = None
    """Fraction of positions that the encoder predicts; None for those that masking selects."""

    def compute(self, model: RestoringModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Runs the generator, samples from it, and predicts the original tokens."""
        # As in ELECTRA: predict the masked tokens, and replace each by a sample.
        batch, masked = inputs.original, inputs.masked
        generated = run_generator(model.generator, inputs, rng, training=training)
        sampled = self.sample(generated.softmax, masked, rng, training=training)
        corrupted = corrupt(batch.ids, batch.padding_mask, masked, sampled)

        # Instead of detecting the samples, the encoder predicts the original tokens.
        restored = self.restore(model, inputs, corrupted, rng, training=training)
        return LossOutput(
            loss_sums={"generator_loss": tf.reduce_sum(generated.losses)} | restored.loss_sums,
            metrics={"generator_sampled_accuracy": fraction(
                         sampled == masked.original_ids, masked.filled),
                     "replaced_fraction": fraction(corrupted.replaced, batch.padding_mask)},
            per_example=generator_fields(masked, generated.best_ids) | restored.per_example)

    def restore(self, model: RestoringModel, inputs: MaskedBatch, corrupted: Corrupted,
                rng: Rng, *, training: bool) -> LossOutput:
        """Predicts the selected tokens; "restored_ids" int32 [B, N] are the most likely ones."""
        predicted = run_generator(
            model.restorer, inputs._replace(ids=corrupted.ids), rng, training=training)
        return LossOutput(loss_sums={"restoring_loss": tf.reduce_sum(predicted.losses)}, metrics={},
                          per_example={"restored_ids": predicted.best_ids})

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns the accuracies of generator and restorer on the selected tokens."""
        return {"generator_accuracy": token_accuracy(per_example),
                "generator_sampled_accuracy": means["generator_sampled_accuracy"],
                "restoring_accuracy": token_accuracy(per_example, "restored_ids")}

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the encoder that is fine-tuned, and the generator."""
        # The encoder has a head over the vocabulary; All-Tokens MLM runs it at all positions.
        config = self.config.model.discriminator
        restorer = specs.language_model(
            "encoder", config, parameter_shapes.full_encoder(config),
            head=f"{RESTORER}_predictions", fraction=self.restored_fraction)
        return restorer, specs.generator(self.config.model)


class AllTokensMlmObjective(ReplaceMlmObjective):
    """All-Tokens MLM: min L_MLM(generator) + cross entropy of all tokens, copied or predicted."""

    model_class = CopyingModel
    losses = ("generator_loss", "all_tokens_loss")
    restored_fraction = 1.0

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the networks of `ReplaceMlmObjective`, with the head that copies."""
        restorer, generator = super().network_specs()
        copying = specs.Head(scores_vocabulary=False, weights=parameter_shapes.binary_head(
            COPY, self.config.model.discriminator))
        return dataclasses.replace(restorer, heads=(*restorer.heads, copying)), generator

    def denominators(self, inputs: MaskedBatch) -> Mapping[str, tf.Tensor]:
        """Returns the number of masked tokens for the generator, of all for the encoder."""
        tokens = count(inputs.original.padding_mask)
        return {**super().denominators(inputs), "all_tokens_loss": tokens}

    def restore(self, model: CopyingModel, inputs: MaskedBatch, corrupted: Corrupted,
                rng: Rng, *, training: bool) -> LossOutput:
        """Predicts all tokens; "logits" float32 [B, L] are those of not copying a token."""
        # softmax(x_t) of every position: the head scores all B * L vectors.
        batch, selected = inputs.original, inputs.masked
        hidden = model.restorer.encode(
            corrupted.ids, batch.segment_ids, batch.padding_mask, rng if training else None)
        everywhere = MaskedPositions(tf.zeros_like(batch.ids), batch.ids, batch.padding_mask)
        predicted = score_predictions(
            model.restorer.head(tf.reshape(hidden, [-1, hidden.shape[-1]])), everywhere,
            training=training)

        # -log p(x_t), p a mixture of copying the token that was read and of predicting one.
        not_copying = model.copying(hidden)
        losses = copy_loss(-not_copying, predicted.losses, ~corrupted.replaced)
        return LossOutput(
            loss_sums={"all_tokens_loss": tf.reduce_sum(
                losses * tf.cast(batch.padding_mask, tf.float32))}, metrics={},
            per_example={"restored_ids": gather_at(predicted.best_ids, selected.positions),
                         "corrupted_ids": corrupted.ids, "replaced": corrupted.replaced,
                         "logits": not_copying})

    def detection_logits(self, model: CopyingModel, batch: Batch) -> tf.Tensor:
        """Returns the logits float32 [B, L] of not copying a token."""
        return model.copying(model.restorer.encode(batch.ids, batch.segment_ids,
                                                   batch.padding_mask))


def copy_loss(copy_logits: tf.Tensor, losses: tf.Tensor, unchanged: tf.Tensor) -> tf.Tensor:
    """Returns -log(D [unchanged] + (1 - D) p), with D = sigmoid(copy_logits) and p = exp(-losses).

    p is the original token's probability; `unchanged` bool is True where the text still has that
    token; both other tensors are float32, all of one shape. It computes with logarithms, so that a
    tiny D or p keeps its precision.
    """
    # log((1 - D) p) and log D; the log of their sum is log(exp(a) + exp(b)) without overflow.
    predicted = tf.math.log_sigmoid(-copy_logits) - losses
    copied = tf.math.log_sigmoid(copy_logits)
    larger = tf.stop_gradient(tf.maximum(copied, predicted))
    either = larger + tf.math.log(tf.exp(copied - larger) + tf.exp(predicted - larger))
    return -tf.where(unchanged, either, predicted)

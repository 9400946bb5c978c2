"""A generator that is rewarded for fooling the discriminator (ELECTRA, section 3.2, appendix F).

Samples have no gradient, so policy gradient trains the generator (REINFORCE; Williams, 1992).
The reward of a sample at position t is the discriminator's loss there,

    R = -log D(x, t) if the sample is the original token, else -log(1 - D(x, t)),

with D the probability of an original token. A baseline b = -log sigmoid(w h_t), h_t the generator's
hidden vector, is subtracted from it:

    gradient = (R - b) grad log p_G(sample at t),  one sample, ascending.

The baseline's loss is the cross entropy between sigmoid(w h_t) and exp(-R), the probability that
the discriminator gave to the correct label; its gradient does not reach the generator's encoder.
The paper finds this worse than maximum likelihood: the generator learns slowly and its
distributions have low entropy.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.corruption import cross_entropy
from electra_tf.modeling.electra import ElectraModel, gather_vectors
from electra_tf.modeling.layers import Dense, LayerOptions
from electra_tf.modeling.masking import gather_at
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.objective import LossOutput, WeightedMean, count
from electra_tf.objectives.pretraining import (
    Arrays,
    MaskedBatch,
    generator_fields,
    score_predictions,
)


class AdversarialModel(ElectraModel):
    """A generator, a discriminator, and a baseline that predicts the reward."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        super()._create(config, options)
        self.baseline = Dense("baseline/dense", config.generator.hidden_size, 1, options,
                              config.initializer_range)


class AdversarialObjective(ElectraObjective):
    """The adversarial objective: min 50 L_Disc(discriminator), max L_Disc over the samples."""

    model_class = AdversarialModel
    losses = ("policy_loss", "baseline_loss", "discriminator_loss")
    own_samples = True  # The policy gradient is that of the distribution that was drawn from.

    def compute(self, model: AdversarialModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Runs the generator, then the discriminator, whose loss is the generator's reward."""
        # The generator's hidden vectors [B * N, H] and distributions at the selected positions.
        batch, masked = inputs.original, inputs.masked
        hidden = gather_vectors(model.generator.encode(
            inputs.ids, batch.segment_ids, batch.padding_mask,
            rng if training else None), masked.positions)
        logits = model.generator.head(hidden)
        generated = score_predictions(logits, masked, training=training)

        # Samples int32 [B, N], and R, the discriminator's loss at each of them.
        sampled = self.sample(generated.softmax, masked, rng, training=training)
        output = self.discriminate(model, inputs, sampled, rng, training=training)
        reward = tf.nn.sigmoid_cross_entropy_with_logits(
            tf.cast(output.per_example["replaced"], tf.float32), output.per_example["logits"])
        reward = tf.stop_gradient(gather_at(reward, masked.positions))

        # -log p_G(sample) and the baseline's logit w h, float32 [B, N]. The baseline's gradient
        # stops at h.
        shape = masked.positions.shape
        surprise = tf.reshape(cross_entropy(
            logits, tf.reshape(sampled, [-1]), generated.softmax), shape)
        baseline = tf.reshape(tf.cast(model.baseline(tf.stop_gradient(hidden)), tf.float32), shape)

        # Sums over the slots that are filled; the discriminator's loss joins them.
        policy_loss, baseline_loss = policy_losses(reward, surprise, baseline)
        filled = tf.cast(masked.filled, tf.float32)
        slots = count(masked.filled)
        return LossOutput(
            loss_sums={"policy_loss": tf.reduce_sum(policy_loss * filled),
                       "baseline_loss": tf.reduce_sum(baseline_loss * filled)} | output.loss_sums,
            metrics=dict(output.metrics) | {
                "generator_loss": WeightedMean(tf.reduce_sum(generated.losses), slots),
                "generator_reward": WeightedMean(tf.reduce_sum(reward * filled), slots)},
            per_example=output.per_example | generator_fields(masked, generated.best_ids))

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator, and the generator, one of whose heads is the baseline."""
        discriminator, generator = super().network_specs()
        baseline = specs.Head(
            weights=parameter_shapes.dense("baseline/dense", generator.encoder.hidden_size, 1),
            scores_vocabulary=False, fraction=None)
        return discriminator, dataclasses.replace(generator, heads=(*generator.heads, baseline))

    def scores(self, per_example: Arrays, means: Mapping[str, float]) -> dict[str, float]:
        """Returns ELECTRA's scores, the generator's loss as a language model, and its reward."""
        return {"generator_loss": means["generator_loss"],
                "generator_reward": means["generator_reward"]} | super().scores(per_example, means)


def policy_losses(reward: tf.Tensor, surprise: tf.Tensor,
                  baseline: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the generator's and the baseline's loss of every sample (appendix F), float32 [...].

    The gradient of the generator's is minus the policy gradient. `reward` is R, a constant of 0 or
    more, `surprise` is -log p_G(sample), and `baseline` is its logit w h; all are float32 [...].
    """
    # b = -log sigmoid(w h); the loss (R - b) (-log p_G) has minus the policy gradient.
    expected = tf.stop_gradient(-tf.math.log_sigmoid(baseline))
    # The baseline's target is exp(-R), the probability that D gave to the correct label.
    return ((reward - expected) * surprise,
            tf.nn.sigmoid_cross_entropy_with_logits(tf.exp(-reward), baseline))

"""Electric: an energy-based cloze model (Clark et al., "Pre-Training Transformers as Energy-Based
Cloze Models", EMNLP 2020).

The discriminator's output at a position is an energy E(x)_t: p(x_t | the others) is proportional to
exp(-E(x)_t), never normalised. It is trained by noise-contrastive estimation: some tokens are drawn
anew from q, and with k of n replaced

    p(noise at t) = k q(x_t) / (k q(x_t) + (n - k) exp(-E(x)_t))
                  = sigmoid(E(x)_t + ln q(x_t) + ln(k / (n - k)))

(section 2.2). q is a two-tower generator, which knows q(x_t) for every position in one pass
(section 2.3). A redrawn token that is the old one is noise all the same. The sum of -E(x)_t scores
a text in one pass (section 3.3): `python -m electra_tf.apps.tools.score_text`.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling import weight_table
from electra_tf.modeling.corruption import Distribution, cross_entropy, distribution
from electra_tf.modeling.masking import Predictions, gather_tokens, mark_positions, maskable
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import ElectricModel
from electra_tf.modeling.weight_table import CLOZE, TOWERS, Network
from electra_tf.objectives.electra import ElectraObjective, detection_measures
from electra_tf.objectives.objective import Outcome
from electra_tf.objectives.pretraining import (
    GeneratorOutcome,
    MaskedBatch,
    count,
    filled_in,
    score_predictions,
)


class ElectricObjective(ElectraObjective):
    """min L_cloze(generator) + 50 L_NCE(discriminator)."""

    networks_class = ElectricModel
    energies = True

    def prepare(self, batch: Batch,
                randomness: Randomness) -> tuple[MaskedBatch, Mapping[str, tf.Tensor]]:
        """Selects tokens; the generator's loss averages over all that aren't special."""
        inputs, weights = super().prepare(batch, randomness)
        return inputs, {**weights, "generator_loss": count(self._predicted(batch))}

    def compute(self, model: ElectricModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Runs the generator over the text as it stands, and redraws the selected tokens."""
        batch, predictions = inputs.original, inputs.masked.predictions
        noise = self.noise(model, batch, randomness, training=training)
        sampled = self.replacement.sample(
            _at(noise.softmax, predictions), predictions, randomness, training=training)
        judged = self.discriminate_noise(
            model, inputs, noise.softmax, sampled, randomness, training=training)
        best = gather_tokens(noise.best_ids, predictions.positions)
        return judged._replace(
            loss_sums={"generator_loss": tf.reduce_sum(noise.losses)} | judged.loss_sums,
            details=judged.details | filled_in(predictions, best))

    def noise(self, model: ElectricModel, batch: Batch, randomness: Randomness,
              *, training: bool) -> GeneratorOutcome:
        """Predicts every token from those before and after it."""
        logits = model.generator(batch.ids, batch.segment_ids, batch.valid,
                                 randomness if training else None)
        everywhere = Predictions(tf.zeros_like(batch.ids), batch.ids, self._predicted(batch))
        return score_predictions(logits, everywhere, training=training)

    def discriminate_noise(self, model: ElectricModel, inputs: MaskedBatch, noise: Distribution,
                           sampled: tf.Tensor, randomness: Randomness,
                           *, training: bool) -> Outcome:
        """Writes the samples int32 [B, N] into the text and tells noise from text."""
        batch, predictions = inputs.original, inputs.masked.predictions
        corrupted, _ = self.replacement.corrupt(batch.ids, batch.valid, predictions, sampled)
        redrawn = mark_positions(predictions.positions, predictions.valid, batch.ids.shape[1])
        energies = model.discriminator(corrupted, batch.segment_ids, batch.valid,
                                       randomness if training else None)
        logits = self.noise_logits(energies, noise, corrupted)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(redrawn, tf.float32), logits)
        return Outcome(
            {"discriminator_loss": tf.reduce_sum(losses * tf.cast(batch.valid, tf.float32))},
            detection_measures(sampled == predictions.original_ids, predictions.valid, redrawn,
                               logits, batch.valid),
            {"corrupted_ids": corrupted, "replaced": redrawn, "logits": logits})

    def noise_logits(self, energies: tf.Tensor, softmax: Distribution,
                     ids: tf.Tensor) -> tf.Tensor:
        """Returns E + ln q + ln(k / (n - k)), float32 [B, L]; no gradient reaches q.

        `softmax` has q of every position, and `ids` int32 [B, L] are the text with its noise.
        """
        surprise = cross_entropy(softmax.logits, tf.reshape(ids, [-1]), softmax)
        rate = self.config.masking.rate
        return energies - tf.reshape(surprise, ids.shape) + math.log(rate / (1.0 - rate))

    def judge(self, model: ElectricModel, batch: Batch) -> tf.Tensor:
        """Returns logits float32 [B, L], positive where a token looks like noise."""
        energies = model.discriminator(batch.ids, batch.segment_ids, batch.valid)
        softmax = distribution(model.generator(batch.ids, batch.segment_ids, batch.valid))
        return self.noise_logits(energies, softmax, batch.ids)

    def networks(self) -> Sequence[Network]:
        """Returns the discriminator and the generator, whose head runs at every position."""
        model = self.config.model
        return weight_table.discriminator(model.discriminator), _two_towers(model)

    def _predicted(self, batch: Batch) -> tf.Tensor:
        """Marks the tokens that the generator's loss counts, bool [B, L]."""
        return maskable(batch.ids, batch.valid, self.given.kinds.special)


def _two_towers(model: ModelConfig) -> Network:
    """Returns the generator's weights: two encoders, and a head over both of their outputs."""
    tower = model.generator
    body = weight_table.generator_embeddings(model)
    for path in TOWERS:
        body |= weight_table.encoder(path, tower)
    both = dataclasses.replace(tower, hidden_size=2 * tower.hidden_size)
    return Network(name="generator", encoder=tower, body=body, towers=len(TOWERS), heads=(
        weight_table.Head(weights=weight_table.vocabulary_head(CLOZE, both),
                          scores_vocabulary=True),))


def _at(softmax: Distribution, predictions: Predictions) -> Distribution:
    """Returns the distributions of the selected positions, B * N of them."""
    rows = predictions.positions.shape[0]
    length = softmax.logits.shape[0] // rows
    index = tf.reshape(
        predictions.positions + length * tf.range(rows)[:, tf.newaxis], [-1])
    return Distribution(*(tf.gather(part, index) for part in softmax))

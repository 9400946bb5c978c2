"""Electric: an energy-based cloze model (Clark et al., "Pre-Training Transformers as Energy-Based
Cloze Models", EMNLP 2020).

The discriminator's output at a position is an energy E(x)_t: p(x_t | the others) is proportional to
exp(-E(x)_t), without normalization. Noise-contrastive estimation trains it: some tokens are drawn
again from q, and with k of n replaced (section 2.2)

    p(noise at t) = k q(x_t) / (k q(x_t) + (n - k) exp(-E(x)_t))
                  = sigmoid(E(x)_t + ln q(x_t) + ln(k / (n - k)))

A two-tower generator computes q(x_t) for every position in one pass (section 2.3). A redrawn token
that equals the original counts as noise. The sum of -E(x)_t scores a text in one pass (section
3.3): `python -m electra_tf.apps.tools.score_text`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.core.errors import UserError
from electra_tf.data.example import Batch
from electra_tf.modeling import network_specs, weight_table
from electra_tf.modeling.corruption import Distribution, corrupt, cross_entropy, distribution
from electra_tf.modeling.electra import (
    Discriminator,
    MaskedLanguageModelHead,
    Networks,
    generator_embeddings,
)
from electra_tf.modeling.encoder import MASKED_SCORE, Embeddings, Encoder, create_encoder
from electra_tf.modeling.layers import Build
from electra_tf.modeling.masking import MaskedPositions, gather_at, mark_positions, maskable
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.objective import Outcome, count
from electra_tf.objectives.pretraining import (
    MaskedBatch,
    generator_details,
    score_predictions,
)

TOWERS, CLOZE = ("generator_ltr", "generator_rtl"), "cloze_predictions"
"""First parts of the paths of the generator's encoders and of its head."""


class ElectricModel(Networks):
    """A discriminator, whose logits are energies, and a two-tower generator of the noise."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        if config.tying is Tying.EVERYTHING:
            raise UserError("model.tying=everything has one encoder, and objective.name=electric "
                            "needs three: choose model.tying=all_embeddings.")
        encoder = create_encoder(config.discriminator, build)
        embeddings = generator_embeddings(config, build, encoder)
        self.discriminator = Discriminator(encoder, build)
        self.generator = TwoTowerGenerator(config.generator, embeddings, build)


class TwoTowerGenerator(tf_keras.layers.Layer):
    """A network that predicts every token from those before and after it (Electric, section 2.3).

    One encoder reads from left to right, one from right to left. At each position the head reads
    the first one's vector of the position before and the second one's of the position after. One
    pass over the original text, without [MASK], predicts all tokens.
    """

    def __init__(self, config: EncoderConfig, embeddings: Embeddings, build: Build):
        """Creates two towers of shape `config`, and the head."""
        super().__init__(name="two_tower_generator", dtype=build.policy)
        self.forward_tower = Encoder(TOWERS[0], config, build, embeddings,
                                     functools.partial(_mask, tf.greater_equal))
        self.backward_tower = Encoder(TOWERS[1], config, build, embeddings,
                                      functools.partial(_mask, tf.less_equal))
        self.head = MaskedLanguageModelHead(
            CLOZE, dataclasses.replace(config, hidden_size=2 * config.hidden_size), build,
            embeddings.words)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             randomness: Randomness | None = None) -> tf.Tensor:
        """Scores the vocabulary at all positions; returns logits [B * L, V'] as `Generator` does.

        At the first and the last position one tower has read no token. As in the reference
        implementation, its vector there is that of the other end of the text.
        """
        hidden = self.encode(ids, segment_ids, valid, randomness)
        return self.head(tf.reshape(hidden, [-1, hidden.shape[-1]]))

    def encode(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
               randomness: Randomness | None = None) -> tf.Tensor:
        """Returns the vectors below the head, [B, L, 2 H]; arguments as for `Generator.encode`."""
        scope = None if randomness is None else randomness.within("generator")
        before = self.forward_tower(ids, segment_ids, valid, scope)
        after = self.backward_tower(ids, segment_ids, valid, scope)
        return tf.concat([tf.roll(before, 1, axis=1), tf.roll(after, -1, axis=1)], axis=-1)


def _mask(attends: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], valid: tf.Tensor,
          dtype: tf.DType) -> tf.Tensor:
    """Returns [B, 1, L, L], -10000 where a query at axis 2 doesn't attend to a key at axis 3.

    `attends` compares their positions. A query with only padding to attend to attends to all keys.
    """
    position = tf.range(valid.shape[1])
    attended = tf.cast(attends(position[:, tf.newaxis], position) & valid[:, tf.newaxis, :], dtype)
    return ((1.0 - attended) * tf.cast(MASKED_SCORE, dtype))[:, tf.newaxis]


class ElectricObjective(ElectraObjective):
    """Electric's objective: min L_cloze(generator) + 50 L_NCE(discriminator)."""

    networks_class = ElectricModel

    def num_terms(self, inputs: MaskedBatch) -> Mapping[str, tf.Tensor]:
        """Returns the number of ordinary tokens for the generator, of all for the discriminator."""
        predicted = count(self._predicted(inputs.original))
        return {**super().num_terms(inputs), "generator_loss": predicted}

    def compute(self, model: ElectricModel, inputs: MaskedBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Runs the generator on the original text, redraws selected tokens, and detects them."""
        batch, masked = inputs.original, inputs.masked
        dropout = randomness if training else None
        everywhere = MaskedPositions(tf.zeros_like(batch.ids), batch.ids, self._predicted(batch))
        noise = score_predictions(
            model.generator(batch.ids, batch.segment_ids, batch.valid, dropout), everywhere,
            training=training)
        rows, length = batch.ids.shape
        index = tf.reshape(
            masked.positions + length * tf.range(rows)[:, tf.newaxis], [-1])
        selected = Distribution(*(tf.gather(part, index) for part in noise.softmax))
        sampled = self.sample(selected, masked, randomness)
        corrupted, _ = corrupt(batch.ids, batch.valid, masked, sampled)
        redrawn = mark_positions(masked.positions, masked.valid, length)
        energies = model.discriminator(corrupted, batch.segment_ids, batch.valid, dropout)
        outcome = self.detection_outcome(inputs, sampled, corrupted, redrawn, self.noise_logits(
            energies, noise.softmax, corrupted))
        best = gather_at(noise.best_ids, masked.positions)
        return outcome._replace(
            loss_sums={"generator_loss": tf.reduce_sum(noise.losses)} | outcome.loss_sums,
            details=outcome.details | generator_details(masked, best))

    def noise_logits(self, energies: tf.Tensor, softmax: Distribution,
                     ids: tf.Tensor) -> tf.Tensor:
        """Returns E + ln q + ln(k / (n - k)), float32 [B, L]; the gradient does not reach q.

        `energies` are E, float32 [B, L], `softmax` is q of every position, and `ids` int32 [B, L]
        are the text with its noise.
        """
        surprise = cross_entropy(softmax.logits, tf.reshape(ids, [-1]), softmax)
        rate = self.config.masking.rate
        return energies - tf.reshape(surprise, ids.shape) + math.log(rate / (1.0 - rate))

    def detection_logits(self, model: ElectricModel, batch: Batch) -> tf.Tensor:
        """Returns logits float32 [B, L], positive for tokens that are probably noise."""
        energies = model.discriminator(batch.ids, batch.segment_ids, batch.valid)
        softmax = distribution(model.generator(batch.ids, batch.segment_ids, batch.valid))
        return self.noise_logits(energies, softmax, batch.ids)

    def networks(self) -> Sequence[network_specs.NetworkSpec]:
        """Returns the discriminator, and the generator's two encoders with a head over both."""
        model = self.config.model
        tower = model.generator
        body = weight_table.generator_embeddings(model)
        for path in TOWERS:
            body |= weight_table.encoder(path, tower)
        both = dataclasses.replace(tower, hidden_size=2 * tower.hidden_size)
        head = network_specs.Head(
            weights=weight_table.vocabulary_head(CLOZE, both), scores_vocabulary=True)
        return network_specs.discriminator(model.discriminator), network_specs.NetworkSpec(
            name="generator", encoder=tower, body=body, towers=len(TOWERS), heads=(head,))

    def _predicted(self, batch: Batch) -> tf.Tensor:
        """Marks the tokens that the generator's loss averages over, bool [B, L]."""
        return maskable(batch.ids, batch.valid, self.context.kinds.special)

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
from electra_tf.modeling import parameter_shapes, specs
from electra_tf.modeling.corruption import Distribution, corrupt, cross_entropy, distribution
from electra_tf.modeling.electra import (
    Discriminator,
    MaskedLanguageModelHead,
    PretrainingModel,
    generator_embeddings,
)
from electra_tf.modeling.encoder import Embeddings, Encoder, create_encoder
from electra_tf.modeling.fused import MASKED_SCORE
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.masking import MaskedPositions, gather_at, mark_positions, maskable
from electra_tf.modeling.rng import Rng
from electra_tf.objectives.electra import ElectraObjective
from electra_tf.objectives.objective import LossOutput, count
from electra_tf.objectives.pretraining import MaskedBatch, generator_fields, score_predictions

TOWERS, CLOZE = ("generator_ltr", "generator_rtl"), "cloze_predictions"
"""First parts of the paths of the generator's encoders and of its head."""


class ElectricModel(PretrainingModel):
    """A discriminator, whose logits are energies, and a two-tower generator of the noise."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        if config.tying is Tying.EVERYTHING:
            raise UserError("model.tying=everything has one encoder, and objective.name=electric "
                            "needs three: choose model.tying=all_embeddings.")
        if config.is_modern:
            raise UserError("objective.name=electric has towers that read one direction, which "
                            f"model.architecture={config.architecture} has no masks for: choose "
                            "model.architecture=electra.")
        encoder = create_encoder(config.discriminator, options)
        embeddings = generator_embeddings(config, options, encoder)
        self.discriminator = Discriminator(encoder, options)
        self.generator = TwoTowerGenerator(config.generator, embeddings, options)


class TwoTowerGenerator(tf_keras.layers.Layer):
    """A network that predicts every token from those before and after it (Electric, section 2.3).

    One encoder reads from left to right, one from right to left. At each position the head reads
    the first one's vector of the position before and the second one's of the position after. One
    pass over the original text, without [MASK], predicts all tokens.
    """

    def __init__(self, config: EncoderConfig, embeddings: Embeddings, options: LayerOptions):
        """Creates two towers of shape `config`, and the head."""
        super().__init__(name="two_tower_generator", dtype=options.policy)
        self.forward_tower = Encoder(TOWERS[0], config, options, embeddings,
                                     functools.partial(_mask, tf.greater_equal))
        self.backward_tower = Encoder(TOWERS[1], config, options, embeddings,
                                      functools.partial(_mask, tf.less_equal))
        self.head = MaskedLanguageModelHead(
            CLOZE, dataclasses.replace(config, hidden_size=2 * config.hidden_size), options,
            embeddings.words)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
             rng: Rng | None = None) -> tf.Tensor:
        """Scores the vocabulary at all positions; returns logits [B * L, V'] as `Generator` does.

        At the first and the last position one tower has read no token. As in the reference
        implementation, its vector there is that of the other end of the text.
        """
        hidden = self.encode(ids, segment_ids, padding_mask, rng)
        return self.head(tf.reshape(hidden, [-1, hidden.shape[-1]]))

    def encode(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
               rng: Rng | None = None) -> tf.Tensor:
        """Returns the vectors below the head, [B, L, 2 H]; arguments as for `Generator.encode`."""
        # At position t: the left-to-right vector of t - 1 beside the right-to-left one of t + 1.
        scope = None if rng is None else rng.within("generator")
        before = self.forward_tower(ids, segment_ids, padding_mask, scope)
        after = self.backward_tower(ids, segment_ids, padding_mask, scope)
        return tf.concat([tf.roll(before, 1, axis=1), tf.roll(after, -1, axis=1)], axis=-1)


def _mask(attends: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], padding_mask: tf.Tensor,
          dtype: tf.DType) -> tf.Tensor:
    """Returns [B, 1, L, L], -10000 where a query at axis 2 doesn't attend to a key at axis 3.

    `attends` compares their positions. A query with only padding to attend to attends to all keys.
    """
    # bool [B, L, L] by query and key: within reach, and not padding.
    position = tf.range(padding_mask.shape[1])
    attended = tf.cast(attends(position[:, tf.newaxis], position) & padding_mask[:, tf.newaxis, :],
                       dtype)
    return ((1.0 - attended) * tf.cast(MASKED_SCORE, dtype))[:, tf.newaxis]


class ElectricObjective(ElectraObjective):
    """Electric's objective: min L_cloze(generator) + 50 L_NCE(discriminator)."""

    model_class = ElectricModel
    own_samples = True  # The energies of other noise than q would be off by its log ratio to q.

    def denominators(self, inputs: MaskedBatch) -> Mapping[str, tf.Tensor]:
        """Returns the number of ordinary tokens for the generator, of all for the discriminator."""
        predicted = count(self._predicted(inputs.original))
        return {**super().denominators(inputs), "generator_loss": predicted}

    def compute(self, model: ElectricModel, inputs: MaskedBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Runs the generator on the original text, redraws selected tokens, and detects them."""
        # q, the generator's distribution at all B * L positions of the original text.
        batch, masked = inputs.original, inputs.masked
        dropout = rng if training else None
        everywhere = MaskedPositions(tf.zeros_like(batch.ids), batch.ids, self._predicted(batch))
        noise = score_predictions(
            model.generator(batch.ids, batch.segment_ids, batch.padding_mask, dropout), everywhere,
            training=training)

        # Noise: the tokens at the selected positions [B, N] are drawn again from q.
        rows, length = batch.ids.shape
        index = tf.reshape(masked.positions + length * tf.range(rows)[:, tf.newaxis], [-1])
        selected = Distribution(*(tf.gather(part, index) for part in noise.softmax))
        sampled = self.sample(selected, masked, rng, training=training)
        corrupted, _ = corrupt(batch.ids, batch.padding_mask, masked, sampled)

        # The discriminator tells noise from data by E(x)_t + ln q(x_t) + ln(k / (n - k)). A
        # redrawn token is noise also if it equals the original.
        redrawn = mark_positions(masked.positions, masked.filled, length)
        energies = model.discriminator(corrupted, batch.segment_ids, batch.padding_mask, dropout)
        output = self.detection_output(inputs, sampled, corrupted, redrawn, self.noise_logits(
            energies, noise.softmax, corrupted))

        best = gather_at(noise.best_ids, masked.positions)
        return output._replace(
            loss_sums={"generator_loss": tf.reduce_sum(noise.losses)} | output.loss_sums,
            per_example=output.per_example | generator_fields(masked, best))

    def noise_logits(self, energies: tf.Tensor, softmax: Distribution, ids: tf.Tensor) -> tf.Tensor:
        """Returns E + ln q + ln(k / (n - k)), float32 [B, L]; the gradient does not reach q.

        `energies` are E, float32 [B, L], `softmax` is q of every position, and `ids` int32 [B, L]
        are the text with its noise.
        """
        # cross_entropy is -ln q(x_t); masking selects k = rate * n of n tokens.
        surprise = cross_entropy(softmax.logits, tf.reshape(ids, [-1]), softmax)
        rate = self.config.masking.rate
        return energies - tf.reshape(surprise, ids.shape) + math.log(rate / (1.0 - rate))

    def detection_logits(self, model: ElectricModel, batch: Batch) -> tf.Tensor:
        """Returns logits float32 [B, L], positive for tokens that are probably noise."""
        energies = model.discriminator(batch.ids, batch.segment_ids, batch.padding_mask)
        softmax = distribution(model.generator(batch.ids, batch.segment_ids, batch.padding_mask))
        return self.noise_logits(energies, softmax, batch.ids)

    def network_specs(self) -> Sequence[specs.NetworkSpec]:
        """Returns the discriminator, and the generator's two encoders with a head over both."""
        # Both towers read one embedding table; the head reads their vectors side by side, [2 H].
        model = self.config.model
        tower = model.generator
        body = parameter_shapes.generator_embeddings(model)
        for path in TOWERS:
            body |= parameter_shapes.encoder(path, tower)
        both = dataclasses.replace(tower, hidden_size=2 * tower.hidden_size)
        head = specs.Head(
            weights=parameter_shapes.vocabulary_head(CLOZE, both), scores_vocabulary=True)
        return specs.discriminator(model.discriminator), specs.NetworkSpec(
            name="generator", encoder=tower, body=body, towers=len(TOWERS), heads=(head,))

    def _predicted(self, batch: Batch) -> tf.Tensor:
        """Marks the tokens that the generator's loss averages over, bool [B, L]."""
        return maskable(batch.ids, batch.padding_mask, self.context.vocab.special)

"""The networks of the objectives that ELECTRA is compared with, and of those that came after."""

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling.electra import (
    Discriminator,
    ElectraModel,
    Generator,
    MaskedLanguageModelHead,
    Networks,
    ReplacedTokenHead,
    both_encoders,
    generator_embeddings,
)
from electra_tf.modeling.encoder import MASKED_SCORE, Embeddings, Encoder, own_encoder
from electra_tf.modeling.layers import Build, Dense
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.weight_table import CLOZE, COPY, ENCODER, FROZEN, RESTORER, TOWERS
from electra_tf.platform.errors import UserError


class MaskedLanguageModel(Networks):
    """The full-size encoder trained as its own generator: BERT's masked language model."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        self.generator = Generator(own_encoder(ENCODER, config.discriminator, build), build)


class DiscriminatorModel(Networks):
    """The discriminator alone, for replacements that no network of the model makes."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        self.discriminator = Discriminator(
            own_encoder(ENCODER, config.discriminator, build), build)


class FrozenGeneratorModel(DiscriminatorModel):
    """The discriminator, and a generator of any size that isn't trained."""

    def __init__(self, config: ModelConfig, generator: EncoderConfig, *, seed: int,
                 policy: str = "float32", recompute: bool = False):
        """Creates every weight; arguments as for `Networks`, `generator` its encoder's."""
        super().__init__(config, seed=seed, policy=policy, recompute=recompute)
        build = Build(seed=seed, policy=policy)
        self.generator = Generator(own_encoder(FROZEN, generator, build), build, FROZEN)
        self.generator.trainable = False


class AdversarialModel(ElectraModel):
    """The two networks, and a baseline that tells how well the discriminator will do."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        super()._create(config, build)
        self.baseline = Dense("baseline/dense", config.generator.hidden_size, 1, seed=build.seed,
                              policy=build.policy, stddev=config.initializer_range)


class RestoringModel(Networks):
    """A generator, and an encoder that predicts what stood where it wrote (section 3.4)."""

    copies = False

    def _create(self, config: ModelConfig, build: Build) -> None:
        encoder, generator = both_encoders(config, build)
        self.restorer = Generator(encoder, build, RESTORER)
        self.copying = ReplacedTokenHead(COPY, encoder.config, build) if self.copies else None
        self.generator = Generator(generator, build)


class CopyingModel(RestoringModel):
    """A `RestoringModel` whose second head says how likely a token is the original one."""

    copies = True


class ElectricModel(Networks):
    """The discriminator, whose logits are energies, and a two-tower generator as the noise."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        if config.tying is Tying.EVERYTHING:
            raise UserError("model.tying=everything has one encoder, and objective.name=electric "
                            "needs three: take all_embeddings.")
        encoder = own_encoder(ENCODER, config.discriminator, build)
        embeddings = generator_embeddings(config, build, encoder)
        self.discriminator = Discriminator(encoder, build)
        self.generator = TwoTowerGenerator(config.generator, embeddings, build)


class TwoTowerGenerator(tf_keras.layers.Layer):
    """Predicts every token from those before and those after it (Electric, section 2.3).

    One encoder reads from left to right, one from right to left; at each position the head gets
    what the first knows of the position before and the second of the position after. So one pass
    over the text as it stands predicts all of it, without a [MASK].
    """

    def __init__(self, config: EncoderConfig, embeddings: Embeddings, build: Build):
        """Creates the towers, of one shape, and the head, `CLOZE`/...."""
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
        """Scores the vocabulary everywhere; logits [B * L, V'], V' as in `Generator`.

        At the ends the towers know of nothing: there stands, as in the reference, what the other
        end has.
        """
        hidden = self.encode(ids, segment_ids, valid, randomness)
        return self.head(tf.reshape(hidden, [-1, hidden.shape[-1]]))

    def encode(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
               randomness: Randomness | None = None) -> tf.Tensor:
        """Returns the vectors below the head, [B, L, 2 H]; arguments as for `Generator`."""
        scope = None if randomness is None else randomness.within("generator")
        before = self.forward_tower(ids, segment_ids, valid, scope)
        after = self.backward_tower(ids, segment_ids, valid, scope)
        return tf.concat([tf.roll(before, 1, axis=1), tf.roll(after, -1, axis=1)], axis=-1)


def _mask(sees: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], valid: tf.Tensor,
          dtype: tf.DType) -> tf.Tensor:
    """Returns [B, 1, L, L], -10000 where a query at axis 2 doesn't attend to a key at axis 3.

    `sees` compares their positions. Padding that sees only padding attends to all positions.
    """
    place = tf.range(valid.shape[1])
    shown = tf.cast(sees(place[:, tf.newaxis], place) & valid[:, tf.newaxis, :], dtype)
    return ((1.0 - shown) * tf.cast(MASKED_SCORE, dtype))[:, tf.newaxis]

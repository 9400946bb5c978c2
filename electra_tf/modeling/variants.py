"""The networks of the objectives that ELECTRA is compared with, and of those that came after."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling.attention import MASKED_SCORE
from electra_tf.modeling.electra import (
    Discriminator,
    ElectraModel,
    Generator,
    MaskedLanguageModelHead,
    ReplacedTokenHead,
    both_encoders,
    electra_encoder,
    encoder_and_embeddings,
)
from electra_tf.modeling.encoder import Embeddings, Encoder
from electra_tf.modeling.layers import Dense
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.weight_table import CLOZE, COPY, FROZEN, RESTORER, TOWERS
from electra_tf.platform.errors import UserError


class MaskedLanguageModel(tf_keras.Model):
    """The full-size encoder trained as its own generator: BERT's masked language model."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight; arguments as for `ElectraModel`."""
        super().__init__(name="masked_language_model", dtype=policy)
        encoder = electra_encoder(
            config.discriminator, seed=seed, policy=policy, recompute=recompute)
        self.generator = Generator(encoder, seed=seed, policy=policy)


class DiscriminatorModel(tf_keras.Model):
    """The discriminator alone, for replacements that no network of the model makes."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight; arguments as for `ElectraModel`."""
        super().__init__(name="discriminator_model", dtype=policy)
        encoder = electra_encoder(
            config.discriminator, seed=seed, policy=policy, recompute=recompute)
        self.discriminator = Discriminator(encoder, seed=seed, policy=policy)


class AdversarialModel(ElectraModel):
    """The two networks, and a baseline that tells how well the discriminator will do."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight; arguments as for `ElectraModel`."""
        super().__init__(config, seed=seed, policy=policy, recompute=recompute)
        self.baseline = Dense(
            "baseline/dense", config.generator.hidden_size, 1, seed=seed, policy=policy,
            stddev=config.initializer_range)


class RestoringModel(tf_keras.Model):
    """A generator, and an encoder that predicts what stood where it wrote (section 3.4)."""

    def __init__(self, config: ModelConfig, *, copies: bool, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight.

        Args:
            config: shapes and tying; the restorer has the discriminator's.
            copies: whether a second head says how likely a token is to be the original one.
            seed: as for `ElectraModel`, like the others.
            policy: of Keras.
            recompute: as in `Encoder`.
        """
        super().__init__(name="restoring_model", dtype=policy)
        encoder, generator = both_encoders(config, seed=seed, policy=policy, recompute=recompute)
        self.restorer = Generator(encoder, seed=seed, policy=policy, part=RESTORER)
        self.copying = ReplacedTokenHead(
            COPY, encoder.config, seed=seed, policy=policy) if copies else None
        self.generator = Generator(generator, seed=seed, policy=policy)


class FrozenGeneratorModel(DiscriminatorModel):
    """The discriminator, and a generator of any size that isn't trained."""

    def __init__(self, config: ModelConfig, generator: EncoderConfig, *, seed: int,
                 policy: str = "float32", recompute: bool = False):
        """Creates every weight; arguments as for `ElectraModel`, `generator` its encoder's."""
        super().__init__(config, seed=seed, policy=policy, recompute=recompute)
        embeddings = Embeddings(f"{FROZEN}/embeddings", generator, seed=seed, policy=policy)
        encoder = Encoder(FROZEN, generator, seed=seed, policy=policy, embeddings=embeddings)
        self.generator = Generator(encoder, seed=seed, policy=policy, part=FROZEN)
        self.generator.trainable = False


class TwoTowerGenerator(tf_keras.layers.Layer):
    """Predicts every token from those before and those after it (Electric, section 2.3).

    One encoder reads from left to right, one from right to left; at each position the head gets
    what the first knows of the position before and the second of the position after. So one pass
    over the text as it stands predicts all of it, without a [MASK].
    """

    def __init__(self, config: EncoderConfig, embeddings: Embeddings, *, seed: int, policy: str,
                 recompute: bool = False):
        """Creates the towers, of one shape, and the head, `CLOZE`/...."""
        super().__init__(name="two_tower_generator", dtype=policy)

        def tower(path: str, mask: Callable[[tf.Tensor, tf.DType], tf.Tensor]) -> Encoder:
            return Encoder(path, config, seed=seed, policy=policy, embeddings=embeddings,
                           recompute=recompute, mask=mask)

        self.forward_tower = tower(TOWERS[0], _left_to_right)
        self.backward_tower = tower(TOWERS[1], _right_to_left)
        self.head = MaskedLanguageModelHead(
            CLOZE, dataclasses.replace(config, hidden_size=2 * config.hidden_size),
            seed=seed, policy=policy, words=embeddings.words)

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
        return tf.concat([_turned(before, 1), _turned(after, -1)], axis=-1)


class ElectricModel(tf_keras.Model):
    """The discriminator, whose logits are energies, and a two-tower generator as the noise."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight; arguments as for `ElectraModel`.

        Raises:
            UserError: everything is to be shared, which two encoders can't.
        """
        if config.tying is Tying.EVERYTHING:
            raise UserError("model.tying=everything has one encoder, and objective.name=electric "
                            "needs three: take all_embeddings.")
        super().__init__(name="electric_model", dtype=policy)
        encoder, embeddings = encoder_and_embeddings(
            config, seed=seed, policy=policy, recompute=recompute)
        self.discriminator = Discriminator(encoder, seed=seed, policy=policy)
        self.generator = TwoTowerGenerator(
            config.generator, embeddings, seed=seed, policy=policy, recompute=recompute)


def _left_to_right(valid: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Hides later tokens and padding; see `_mask`."""
    return _mask(valid, _distances(valid) >= 0, dtype)


def _right_to_left(valid: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Hides earlier tokens and padding; see `_mask`."""
    return _mask(valid, _distances(valid) <= 0, dtype)


def _distances(valid: tf.Tensor) -> tf.Tensor:
    """Returns int32 [L, L]: how many positions a key is before a query."""
    place = tf.range(valid.shape[1])
    return place[:, tf.newaxis] - place


def _mask(valid: tf.Tensor, seen: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns [B, 1, L, L], -10000 where a query at axis 2 doesn't attend to a key at axis 3.

    Padding that sees only padding attends to all positions.
    """
    shown = tf.cast(seen & valid[:, tf.newaxis, :], dtype)
    return ((1.0 - shown) * tf.cast(MASKED_SCORE, dtype))[:, tf.newaxis]


def _turned(x: tf.Tensor, places: int) -> tf.Tensor:
    """Moves [B, L, H] along the positions by 1 or -1; what falls off comes in at the other end."""
    return tf.concat([x[:, -places:], x[:, :-places]], axis=1)

"""The networks of ELECTRA pre-training and what they share (sections 3.1 and 3.2)."""

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling.corruption import gather_vectors
from electra_tf.modeling.embeddings import Embeddings
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.heads import MaskedLanguageModelHead, ReplacedTokenHead
from electra_tf.modeling.layers import DifferenceTable, EmbeddingTable
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.weight_table import ENCODER, GENERATOR


class Generator(tf_keras.layers.Layer):
    """A masked language model: an encoder and a head that scores the vocabulary."""

    def __init__(self, encoder: Encoder, *, seed: int, policy: str, part: str = "generator"):
        """Creates the head, whose weights are named "<part>_predictions/..."."""
        super().__init__(name=f"{part}_network", dtype=policy)
        self.part = part
        self.encoder = encoder
        self.head = MaskedLanguageModelHead(
            f"{part}_predictions", encoder.config, seed=seed, policy=policy,
            words=encoder.embeddings.words)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             positions: tf.Tensor, randomness: Randomness | None = None) -> tf.Tensor:
        """Scores the vocabulary at chosen positions.

        Args:
            ids: int32 [B, L], with [MASK] in them.
            segment_ids: int32 [B, L].
            valid: bool [B, L].
            positions: int32 [B, N].
            randomness: for dropout; None outside of training.

        Returns:
            logits [B * N, V'] of the compute type, V' as in `MaskedLanguageModelHead`.
        """
        hidden = self.encode(ids, segment_ids, valid, randomness)
        return self.head(gather_vectors(hidden, positions))

    def encode(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
               randomness: Randomness | None = None) -> tf.Tensor:
        """Returns the hidden vectors [B, L, H] below the head; arguments as for `call`."""
        scope = None if randomness is None else randomness.within(self.part)
        return self.encoder(ids, segment_ids, valid, scope)


class Discriminator(tf_keras.layers.Layer):
    """Replaced token detection: an encoder and a head that judges every position."""

    def __init__(self, encoder: Encoder, *, seed: int, policy: str):
        super().__init__(name="discriminator_network", dtype=policy)
        self.encoder = encoder
        self.head = ReplacedTokenHead(
            "discriminator_predictions", encoder.config, seed=seed, policy=policy)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             randomness: Randomness | None = None) -> tf.Tensor:
        """Returns logits float32 [B, L], positive where a token looks replaced."""
        scope = None if randomness is None else randomness.within("discriminator")
        return self.head(self.encoder(ids, segment_ids, valid, scope))


class ElectraModel(tf_keras.Model):
    """Generator and discriminator, tied as the configuration says."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight.

        Args:
            config: shapes and tying.
            seed: initial values are a function of it and of each weight's name.
            policy: Keras mixed-precision policy: float32, mixed_bfloat16 or mixed_float16.
            recompute: as in `Encoder`.
        """
        super().__init__(name="electra_model", dtype=policy)
        encoder, generator = both_encoders(config, seed=seed, policy=policy, recompute=recompute)
        self.discriminator = Discriminator(encoder, seed=seed, policy=policy)
        self.generator = Generator(generator, seed=seed, policy=policy)


class TaskModel(tf_keras.Model):
    """The pre-trained encoder and the head of a task (section 3.3)."""

    def __init__(self, config: ModelConfig, head: tf_keras.layers.Layer, *, seed: int,
                 policy: str = "float32", recompute: bool = False):
        """Creates the encoder; arguments as for `ElectraModel`, `head` one of `task_heads`."""
        super().__init__(name="task_model", dtype=policy)
        self.encoder = electra_encoder(
            config.discriminator, seed=seed, policy=policy, recompute=recompute)
        self.head = head


def electra_encoder(config: EncoderConfig, *, seed: int, policy: str, recompute: bool = False,
                    words: DifferenceTable | None = None) -> Encoder:
    """Creates the encoder that is pre-trained and then fine-tuned.

    Its weights are named alike, whatever trains it. Arguments as for `Encoder`; `words`
    instead of a table of its own.
    """
    embeddings = Embeddings(f"{ENCODER}/embeddings", config, seed=seed, policy=policy, words=words)
    return Encoder(ENCODER, config, seed=seed, policy=policy, embeddings=embeddings,
                   recompute=recompute)


def both_encoders(config: ModelConfig, *, seed: int, policy: str,
                  recompute: bool) -> tuple[Encoder, Encoder]:
    """Creates the discriminator's encoder and the generator's, tied as the configuration says."""
    encoder, embeddings = encoder_and_embeddings(
        config, seed=seed, policy=policy, recompute=recompute)
    if config.tying is Tying.EVERYTHING:
        return encoder, encoder
    return encoder, Encoder(GENERATOR, config.generator, seed=seed, policy=policy,
                            embeddings=embeddings, recompute=recompute)


def encoder_and_embeddings(config: ModelConfig, *, seed: int, policy: str,
                           recompute: bool) -> tuple[Encoder, Embeddings]:
    """Creates the discriminator's encoder, and the embeddings of the generator."""
    def own(words: EmbeddingTable | None = None) -> Embeddings:
        return Embeddings(f"{GENERATOR}/embeddings", config.generator, seed=seed, policy=policy,
                          words=words)

    def electra(words: DifferenceTable | None = None) -> Encoder:
        return electra_encoder(config.discriminator, seed=seed, policy=policy,
                               recompute=recompute, words=words)

    if config.tying is Tying.DISENTANGLED:
        embeddings = own()
        return electra(DifferenceTable(
            "electra/embeddings/difference/word_embeddings", embeddings.words,
            policy=policy)), embeddings
    encoder = electra()
    if config.tying is Tying.NONE:
        return encoder, own()
    if config.tying is Tying.TOKEN_EMBEDDINGS:
        return encoder, own(encoder.embeddings.words)
    return encoder, encoder.embeddings

"""The networks of ELECTRA pre-training, their heads and what they share (sections 3.1 and 3.2)."""

import abc

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling import weight_table
from electra_tf.modeling.encoder import Embeddings, Encoder, create_encoder
from electra_tf.modeling.fused import affine
from electra_tf.modeling.layers import Build, Dense, EmbeddingTable, GeluDense, LayerFactory
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.weight_table import GENERATOR

BLOCK = 128  # Vocabulary entries of a block; sampling needs logits that are padded to whole blocks.
IMPOSSIBLE_LOGIT = -1e9  # A logit whose exponential is 0.


class MaskedLanguageModelHead(tf_keras.layers.Layer):
    """A head that scores every vocabulary entry: dense, GELU, layer norm, tied table, bias."""

    def __init__(self, path: str, config: EncoderConfig, build: Build, words: EmbeddingTable):
        super().__init__(name=path, dtype=build.policy)
        self.words = words
        shapes = weight_table.vocabulary_head(path, config)
        parts = LayerFactory(shapes, build, config.initializer_range)
        self.dense = parts.dense(f"{path}/dense", GeluDense)
        self.norm = parts.norm(f"{path}/LayerNorm")
        self.output_bias = self.add_weight(
            name=f"{path}/output_bias", shape=shapes[f"{path}/output_bias"], initializer="zeros",
            experimental_autocast=False)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """Maps [M, H] to logits [M, V'] of the compute type.

        V' is V rounded up to whole blocks of 128; the logits past V are -1e9.
        """
        vectors = self.norm(self.dense(hidden))
        missing = -self.output_bias.shape[0] % BLOCK
        table = tf.pad(tf.cast(self.words.table, vectors.dtype), [[0, missing], [0, 0]])
        bias = tf.pad(tf.cast(self.output_bias, vectors.dtype), [[0, missing]],
                      constant_values=IMPOSSIBLE_LOGIT)
        return affine(vectors, table, bias, transposed=True)


class ReplacedTokenHead(tf_keras.layers.Layer):
    """A head with one logit per position, positive for a token that was probably replaced."""

    def __init__(self, path: str, config: EncoderConfig, build: Build):
        super().__init__(name=path, dtype=build.policy)
        shapes = weight_table.binary_head(path, config)
        self.dense = LayerFactory(shapes, build, config.initializer_range).dense(
            f"{path}/dense", GeluDense)
        self.dense_1 = Dense(f"{path}/dense_1", *shapes[f"{path}/dense_1/kernel"], build)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """Maps [B, L, H] to logits, float32 [B, L]."""
        logits = self.dense_1(self.dense(hidden))
        return tf.cast(tf.squeeze(logits, axis=-1), tf.float32)


class Generator(tf_keras.layers.Layer):
    """A masked language model: an encoder and a head that scores the vocabulary."""

    def __init__(self, encoder: Encoder, build: Build, part: str = GENERATOR):
        """Creates the head, whose weights are named "<part>_predictions/..."."""
        super().__init__(name=f"{part}_network", dtype=build.policy)
        self.part = part
        self.encoder = encoder
        self.head = MaskedLanguageModelHead(
            f"{part}_predictions", encoder.config, build, encoder.embeddings.words)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             positions: tf.Tensor, randomness: Randomness | None = None) -> tf.Tensor:
        """Scores the vocabulary at positions int32 [B, N] of ids with [MASK], int32 [B, L].

        `randomness` is for dropout, None outside of training. Returns logits [B * N, V'] of the
        compute type, V' as in `MaskedLanguageModelHead`.
        """
        hidden = self.encode(ids, segment_ids, valid, randomness)
        return self.head(gather_vectors(hidden, positions))

    def encode(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
               randomness: Randomness | None = None) -> tf.Tensor:
        """Returns the encoder's vectors [B, L, H] of the compute type; arguments as for `call`."""
        scope = None if randomness is None else randomness.within(self.part)
        return self.encoder(ids, segment_ids, valid, scope)


class Discriminator(tf_keras.layers.Layer):
    """A network that detects replaced tokens: an encoder and a head that scores every position."""

    def __init__(self, encoder: Encoder, build: Build):
        super().__init__(name="discriminator_network", dtype=build.policy)
        self.encoder = encoder
        self.head = ReplacedTokenHead("discriminator_predictions", encoder.config, build)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, valid: tf.Tensor,
             randomness: Randomness | None = None) -> tf.Tensor:
        """Returns logits float32 [B, L]; arguments as for `Generator.encode`."""
        scope = None if randomness is None else randomness.within("discriminator")
        return self.head(self.encoder(ids, segment_ids, valid, scope))


class Networks(tf_keras.Model, abc.ABC):
    """The networks that an objective trains; a subclass creates them."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight; seed, policy and recompute are those of `Build`."""
        super().__init__(name="networks", dtype=policy)
        self._create(config, Build(seed=seed, policy=policy, recompute=recompute))

    @abc.abstractmethod
    def _create(self, config: ModelConfig, build: Build) -> None:
        """Sets the networks as attributes."""


class ElectraModel(Networks):
    """A generator and a discriminator, tied as the configuration says."""

    def _create(self, config: ModelConfig, build: Build) -> None:
        encoder, generator = both_encoders(config, build)
        self.discriminator = Discriminator(encoder, build)
        self.generator = Generator(generator, build)


def both_encoders(config: ModelConfig, build: Build) -> tuple[Encoder, Encoder]:
    """Creates the discriminator's encoder and the generator's, tied as the configuration says."""
    encoder = create_encoder(config.discriminator, build)
    if config.tying is Tying.EVERYTHING:
        return encoder, encoder
    embeddings = generator_embeddings(config, build, encoder)
    return encoder, Encoder(GENERATOR, config.generator, build, embeddings)


def generator_embeddings(config: ModelConfig, build: Build, encoder: Encoder) -> Embeddings:
    """Returns the generator's embeddings, some or all of them those of the discriminator."""
    if config.tying is Tying.ALL_EMBEDDINGS:
        return encoder.embeddings
    words = encoder.embeddings.words if config.tying is Tying.TOKEN_EMBEDDINGS else None
    return Embeddings(f"{GENERATOR}/embeddings", config.generator, build, words)


def gather_vectors(hidden: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns the vectors [B * N, H] of `hidden` [B, L, H] at `positions` int32 [B, N]."""
    batch_size, length, size = hidden.shape
    if length is None:
        length = tf.shape(hidden)[1]
    rows = positions + length * tf.range(batch_size)[:, tf.newaxis]
    return tf.gather(tf.reshape(hidden, [-1, size]), tf.reshape(rows, [-1]))

"""The networks of ELECTRA pre-training, their heads and what they share (sections 3.1 and 3.2)."""

import abc

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.modeling import parameter_shapes
from electra_tf.modeling.encoder import Embeddings, Encoder, create_encoder
from electra_tf.modeling.fused import affine, dimensions
from electra_tf.modeling.layers import Dense, EmbeddingTable, GeluDense, LayerFactory, LayerOptions
from electra_tf.modeling.parameter_shapes import GENERATOR
from electra_tf.modeling.rng import Rng

BLOCK = 128  # Vocabulary entries of a block; sampling needs logits that are padded to whole blocks.
IMPOSSIBLE_LOGIT = -1e9  # A logit whose exponential is 0.


class MaskedLanguageModelHead(tf_keras.layers.Layer):
    """A head that scores every vocabulary entry: dense, GELU, layer norm, tied table, bias."""

    def __init__(self, path: str, config: EncoderConfig, options: LayerOptions,
                 words: EmbeddingTable):
        super().__init__(name=path, dtype=options.policy)
        self.words = words
        shapes = parameter_shapes.vocabulary_head(path, config)
        layers = LayerFactory(shapes, options, config.output_initializer_range,
                              config.layer_norm_epsilon)
        self.dense = layers.dense(f"{path}/dense", GeluDense)
        self.norm = layers.norm(f"{path}/LayerNorm")
        self.output_bias = self.add_weight(
            name=f"{path}/output_bias", shape=shapes[f"{path}/output_bias"], initializer="zeros",
            experimental_autocast=False)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """Maps [M, H] to logits [M, V'] of the compute type.

        V' is V rounded up to whole blocks of 128; the logits past V are -1e9.
        """
        # layer_norm(gelu(h W + b)), [M, E].
        vectors = self.norm(self.dense(hidden))
        # Logits = vectors . word vectors + bias; the table is padded to whole blocks, [V', E].
        missing = -self.output_bias.shape[0] % BLOCK
        table = tf.pad(tf.cast(self.words.table, vectors.dtype), [[0, missing], [0, 0]])
        bias = tf.pad(tf.cast(self.output_bias, vectors.dtype), [[0, missing]],
                      constant_values=IMPOSSIBLE_LOGIT)
        return affine(vectors, table, bias, transposed=True)


class ReplacedTokenHead(tf_keras.layers.Layer):
    """A head with one logit per position, positive for a token that was probably replaced."""

    def __init__(self, path: str, config: EncoderConfig, options: LayerOptions):
        super().__init__(name=path, dtype=options.policy)
        shapes = parameter_shapes.binary_head(path, config)
        self.dense = LayerFactory(shapes, options, config.initializer_range).dense(
            f"{path}/dense", GeluDense)
        self.dense_1 = Dense(f"{path}/dense_1", *shapes[f"{path}/dense_1/kernel"], options)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """Maps [B, L, H] to logits, float32 [B, L]."""
        logits = self.dense_1(self.dense(hidden))
        return tf.cast(tf.squeeze(logits, axis=-1), tf.float32)


class _Network(tf_keras.layers.Layer):
    """An encoder below the head of a subclass."""

    def __init__(self, part: str, encoder: Encoder, options: LayerOptions):
        super().__init__(name=f"{part}_network", dtype=options.policy)
        self.part, self.encoder = part, encoder

    def encode(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
               rng: Rng | None = None) -> tf.Tensor:
        """Returns the encoder's vectors [B, L, H] of the compute type; arguments as for `call`."""
        scope = None if rng is None else rng.within(self.part)
        return self.encoder(ids, segment_ids, padding_mask, scope)


class Generator(_Network):
    """A masked language model: an encoder and a head that scores the vocabulary."""

    def __init__(self, encoder: Encoder, options: LayerOptions, part: str = GENERATOR):
        """Creates the head, whose weights are named "<part>_predictions/..."."""
        super().__init__(part, encoder, options)
        self.head = MaskedLanguageModelHead(
            f"{part}_predictions", encoder.config, options, encoder.embeddings.words)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
             positions: tf.Tensor, rng: Rng | None = None) -> tf.Tensor:
        """Scores the vocabulary at positions int32 [B, N] of ids with [MASK], int32 [B, L].

        `rng` is for dropout, None outside of training. Returns logits [B * N, V'] of the
        compute type, V' as in `MaskedLanguageModelHead`.
        """
        hidden = self.encode(ids, segment_ids, padding_mask, rng)
        return self.head(gather_vectors(hidden, positions))


class Discriminator(_Network):
    """A network that detects replaced tokens: an encoder and a head that scores every position."""

    def __init__(self, encoder: Encoder, options: LayerOptions):
        super().__init__("discriminator", encoder, options)
        self.head = ReplacedTokenHead("discriminator_predictions", encoder.config, options)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor, padding_mask: tf.Tensor,
             rng: Rng | None = None) -> tf.Tensor:
        """Returns logits float32 [B, L]; arguments as for `Generator.call`."""
        return self.head(self.encode(ids, segment_ids, padding_mask, rng))


class PretrainingModel(tf_keras.Model, abc.ABC):
    """The networks that an objective trains; a subclass creates them."""

    def __init__(self, config: ModelConfig, *, seed: int, policy: str = "float32",
                 recompute: bool = False):
        """Creates every weight; seed, policy and recompute are those of `LayerOptions`."""
        super().__init__(name="networks", dtype=policy)
        self._create(config, LayerOptions(seed=seed, policy=policy, recompute=recompute))

    @abc.abstractmethod
    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        """Sets the networks as attributes."""


class ElectraModel(PretrainingModel):
    """A generator and a discriminator, tied as the configuration says."""

    def _create(self, config: ModelConfig, options: LayerOptions) -> None:
        encoder, generator = both_encoders(config, options)
        self.discriminator = Discriminator(encoder, options)
        self.generator = Generator(generator, options)


def both_encoders(config: ModelConfig, options: LayerOptions) -> tuple[Encoder, Encoder]:
    """Creates the discriminator's encoder and the generator's, tied as the configuration says."""
    encoder = create_encoder(config.discriminator, options)
    if config.tying is Tying.EVERYTHING:
        return encoder, encoder
    embeddings = generator_embeddings(config, options, encoder)
    return encoder, Encoder(GENERATOR, config.generator, options, embeddings)


def generator_embeddings(config: ModelConfig, options: LayerOptions,
                         encoder: Encoder) -> Embeddings:
    """Returns the generator's embeddings, some or all of them those of the discriminator."""
    if config.tying is Tying.ALL_EMBEDDINGS:
        return encoder.embeddings
    words = encoder.embeddings.words if config.tying is Tying.TOKEN_EMBEDDINGS else None
    return Embeddings(f"{GENERATOR}/embeddings", config.generator, options, words)


def gather_vectors(hidden: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns the vectors [B * N, H] of `hidden` [B, L, H] at `positions` int32 [B, N]."""
    batch_size, length, size = dimensions(hidden)
    # Position n of row b has index b * L + n among all rows' vectors, [B * L, H].
    rows = positions + length * tf.range(batch_size)[:, tf.newaxis]
    return tf.gather(tf.reshape(hidden, [-1, size]), tf.reshape(rows, [-1]))

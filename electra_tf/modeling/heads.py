"""The two output heads of pre-training (ELECTRA, section 3.1)."""

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.layers import Dense, EmbeddingTable, GeluDense, LayerNorm
from electra_tf.modeling.products import affine
from electra_tf.modeling.sampling import BLOCK

IMPOSSIBLE_LOGIT = -1e9


class MaskedLanguageModelHead(tf_keras.layers.Layer):
    """Scores of every vocabulary entry: dense, GELU, layer norm, tied table, bias."""

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str,
                 words: EmbeddingTable):
        super().__init__(name=path, dtype=policy)
        self.words = words
        shapes = weight_table.vocabulary_head(path, config)
        self.dense = GeluDense(f"{path}/dense", *shapes[f"{path}/dense/kernel"],
                               seed=seed, policy=policy, stddev=config.initializer_range)
        self.norm = LayerNorm(f"{path}/LayerNorm", *shapes[f"{path}/LayerNorm/gamma"],
                              policy=policy)
        self.output_bias = self.add_weight(
            name=f"{path}/output_bias", shape=shapes[f"{path}/output_bias"], initializer="zeros",
            experimental_autocast=False)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """Scores hidden vectors.

        Args:
            hidden: [M, H].

        Returns:
            [M, V'] of the compute type, V' being V rounded up to whole blocks; the scores past V
            are -1e9.
        """
        vectors = self.norm(self.dense(hidden))
        missing = -self.output_bias.shape[0] % BLOCK
        table = tf.pad(tf.cast(self.words.table, vectors.dtype), [[0, missing], [0, 0]])
        bias = tf.pad(tf.cast(self.output_bias, vectors.dtype), [[0, missing]],
                      constant_values=IMPOSSIBLE_LOGIT)
        return affine(vectors, table, bias, transposed=True)


class ReplacedTokenHead(tf_keras.layers.Layer):
    """One score per position: how much the token looks replaced."""

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str):
        super().__init__(name=path, dtype=policy)
        shapes = weight_table.binary_head(path, config)
        self.dense = GeluDense(f"{path}/dense", *shapes[f"{path}/dense/kernel"], seed=seed,
                               policy=policy, stddev=config.initializer_range)
        self.dense_1 = Dense(f"{path}/dense_1", *shapes[f"{path}/dense_1/kernel"], seed=seed,
                             policy=policy)

    def call(self, hidden: tf.Tensor) -> tf.Tensor:
        """Maps [B, L, H] to logits, float32 [B, L]."""
        logits = self.dense_1(self.dense(hidden))
        return tf.cast(tf.squeeze(logits, axis=-1), tf.float32)

"""Pooling of the encoder's vectors to one vector for each text, as sentence-transformers has it."""

import tensorflow as tf
import tf_keras


def pool(hidden: tf.Tensor, padding_mask: tf.Tensor, mode: str) -> tf.Tensor:
    """Maps the vectors of tokens, float32 [B, L, H], to vectors of texts, float32 [B, H].

    `padding_mask` is bool [B, L], False on padding, which has no effect. `mode` is one of
    `POOLING_MODES`.
    """
    if mode == "cls":
        return hidden[:, 0]
    mask = tf.expand_dims(padding_mask, axis=2)
    if mode == "max":
        return tf.reduce_max(tf.where(mask, hidden, hidden.dtype.min), 1)

    # Weights [B, L, 1], 0 on padding, and their sums [B, 1].
    weights = tf.cast(mask, tf.float32)
    count = tf.reduce_sum(weights, 1)
    if mode == "lasttoken":
        return tf.gather(hidden, tf.cast(count[:, 0], tf.int32) - 1, batch_dims=1)
    if mode == "weightedmean":  # Position t, from 1, has weight t.
        weights *= tf.cumsum(tf.ones_like(weights), axis=1)
        count = tf.reduce_sum(weights, 1)
    total = tf.reduce_sum(hidden * weights, 1)
    return total / (tf.sqrt(count) if mode == "mean_sqrt_len_tokens" else count)


def normalized(vectors: tf.Tensor) -> tf.Tensor:
    """Returns vectors of length 1, float32 [B, H]."""
    # TensorFlow Serving does not link the op Square of `tf.math.l2_normalize`.
    squares = tf.reduce_sum(vectors * vectors, axis=-1, keepdims=True)
    return vectors * tf.math.rsqrt(tf.maximum(squares, 1e-24))


class PoolingHead(tf_keras.layers.Layer):
    """A head without weights, which returns vectors of length 1."""

    def __init__(self, mode: str):
        super().__init__(name="pooling", dtype="float32")
        self.mode = mode

    def call(self, hidden: tf.Tensor, padding_mask: tf.Tensor) -> tf.Tensor:
        """Pools hidden [B, L, H] of any type over valid tokens, bool [B, L]; float32 [B, H]."""
        return normalized(pool(tf.cast(hidden, tf.float32), padding_mask, self.mode))

"""Multi-head self-attention (Vaswani et al., 2017, section 3.2)."""

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.layers import Dense
from electra_tf.modeling.randomness import Randomness, dropout

MASKED_SCORE = -10000.0
"""Added to the score of a key that isn't valid: the reference's constant."""


def attention_bias(valid: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Turns bool [B, L] into [B, 1, 1, L]: 0 for valid keys, -10000 for padding."""
    bias = (1.0 - tf.cast(valid, dtype)) * tf.cast(MASKED_SCORE, dtype)
    return bias[:, tf.newaxis, tf.newaxis, :]


class SelfAttention(tf_keras.layers.Layer):
    """softmax(Q K^T / sqrt(D)) V per head, D = H / A.

    Queries, keys and values are three products: splitting one fused product would cost
    strided-slice gradients. The scale goes into the queries, the smaller tensor.
    """

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str):
        super().__init__(name=path, dtype=policy)
        size = config.hidden_size
        self.num_heads = config.num_heads
        self.dropout_rate = config.attention_dropout
        self.query, self.key, self.value = (
            Dense(f"{path}/{name}", size, size, seed=seed, policy=policy)
            for name in ("query", "key", "value"))

    def call(self, x: tf.Tensor, bias: tf.Tensor, randomness: Randomness | None) -> tf.Tensor:
        """Attends.

        Args:
            x: [B, L, H].
            bias: [B, 1, 1, L], added to the scores.
            randomness: None outside of training.

        Returns:
            [B, L, H].
        """
        head_size = x.shape[-1] // self.num_heads
        query = self._split_heads(self.query(x) * tf.cast(head_size**-0.5, x.dtype))
        key, value = self._split_heads(self.key(x)), self._split_heads(self.value(x))
        scores = tf.matmul(query, key, transpose_b=True) + bias
        weights = dropout(tf.nn.softmax(scores), self.dropout_rate, randomness, self.name)
        context = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return tf.reshape(context, x.shape)

    def _split_heads(self, x: tf.Tensor) -> tf.Tensor:
        """[B, L, H] -> [B, A, L, D]."""
        batch_size, length, size = x.shape
        heads = tf.reshape(x, [batch_size, length, self.num_heads, size // self.num_heads])
        return tf.transpose(heads, [0, 2, 1, 3])

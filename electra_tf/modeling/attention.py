"""Multi-head self-attention (Vaswani et al., 2017, section 3.2)."""

import enum
from collections.abc import Sequence

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.fused import attention_weights
from electra_tf.modeling.layers import Dense
from electra_tf.modeling.products import affine
from electra_tf.modeling.randomness import Randomness, dropout_keys
from electra_tf.modeling.shapes import dimensions

MASKED_SCORE = -10000.0
"""Added to the score of a key that isn't valid: the reference's constant."""


def attention_bias(valid: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Turns bool [B, L] into [B, 1, 1, L]: 0 for valid keys, -10000 for padding."""
    bias = (1.0 - tf.cast(valid, dtype)) * tf.cast(MASKED_SCORE, dtype)
    # TensorFlow Lite has no tf.newaxis for shapes that vary.
    return tf.expand_dims(tf.expand_dims(bias, 1), 1)


class Sight(enum.Enum):
    """Which positions a position attends to."""

    ALL = "all"
    EARLIER = "earlier"
    """Itself and those before: left to right."""
    LATER = "later"
    """Itself and those after: right to left."""


def sight_bias(valid: tf.Tensor, sight: Sight, dtype: tf.DType) -> tf.Tensor:
    """Turns bool [B, L] into [B, 1, 1, L], or [B, 1, L, L] where sight differs by position.

    -10000 hides a key. Where all are hidden, as from padding that looks at padding, attention is
    over all of them.
    """
    if sight is Sight.ALL:
        return attention_bias(valid, dtype)
    place = tf.range(valid.shape[1])
    reach = place[:, tf.newaxis] - place  # From a query to a key before it.
    seen = reach >= 0 if sight is Sight.EARLIER else reach <= 0
    shown = tf.cast(seen & valid[:, tf.newaxis, :], dtype)
    return ((1.0 - shown) * tf.cast(MASKED_SCORE, dtype))[:, tf.newaxis]


class SelfAttention(tf_keras.layers.Layer):
    """softmax(Q K^T / sqrt(D)) V per head, D = H / A.

    Queries, keys and values come from one product, whose result is turned so that each is a
    contiguous third: taking them apart costs nothing, neither does the gradient. The scale goes
    into the queries' weights, the smallest tensor there is.
    """

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str):
        super().__init__(name=path, dtype=policy)
        size = config.hidden_size
        self.num_heads = config.num_heads
        self.dropout_rate = config.attention_dropout
        self.query, self.key, self.value = (
            Dense(f"{path}/{name}", size, size, seed=seed, policy=policy,
                  stddev=config.initializer_range)
            for name in ("query", "key", "value"))

    def call(self, x: tf.Tensor, bias: tf.Tensor, randomness: Randomness | None,
             positions: int | None = None) -> tf.Tensor:
        """Attends.

        Args:
            x: [B, L, H].
            bias: [B, 1, 1, L] or [B, 1, L, L], added to the scores.
            randomness: None outside of training.
            positions: how many attend, from the first; all if None.

        Returns:
            [B, L, H], or [B, positions, H].
        """
        parts = [self.query, self.key, self.value]
        if positions is None:
            query, key, value = self._project(x, parts)
        else:
            (query,) = self._project(x[:, :positions], parts[:1])
            key, value = self._project(x, parts[1:])
        scores = tf.matmul(query, key, transpose_b=True) + bias
        keys = dropout_keys(randomness, self.name, x.shape[0])
        weights = attention_weights(scores, self.dropout_rate, keys)
        context = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return tf.reshape(context, [dimensions(x)[0], -1, x.shape[2]])

    def _project(self, x: tf.Tensor, parts: Sequence[Dense]) -> list[tf.Tensor]:
        """Maps [B, L, H] to queries, keys or values, [B, A, L, D] for each of the parts."""
        batch_size, length, size = dimensions(x)
        head_size = size // self.num_heads
        kernels = [tf.convert_to_tensor(part.kernel) for part in parts]
        biases = [tf.convert_to_tensor(part.bias) for part in parts]
        if parts[0] is self.query:
            scale = tf.cast(head_size**-0.5, x.dtype)
            kernels[0], biases[0] = kernels[0] * scale, biases[0] * scale
        joint = affine(tf.reshape(x, [-1, size]), tf.concat(kernels, axis=1),
                       tf.concat(biases, axis=0))
        heads = tf.reshape(joint, [batch_size, length, len(parts), self.num_heads, head_size])
        return tf.unstack(tf.transpose(heads, [2, 0, 3, 1, 4]))

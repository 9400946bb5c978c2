"""The three layers with weights that everything is made of: dense, layer norm, embedding table.

Weights are created at once and carry their full path as name, the names of the reference
implementation's checkpoints, for example "electra/encoder/layer_0/output/dense/kernel".
Initial values are a pure function of (seed, path).
"""

import tensorflow as tf
import tf_keras

from electra_tf.modeling.gelu import gelu
from electra_tf.modeling.layer_norm import layer_norm, residual_norm
from electra_tf.modeling.products import affine
from electra_tf.modeling.randomness import stream_key
from electra_tf.modeling.shapes import dimensions


class Dense(tf_keras.layers.Layer):
    """y = x W + b over the last axis, as one matrix product of rank 2."""

    def __init__(self, path: str, inputs: int, outputs: int, *, seed: int, policy: str,
                 stddev: float | None = None):
        """Creates W [inputs, outputs] and b [outputs].

        Args:
            path: full name of the layer.
            inputs: size of the last axis of the input.
            outputs: size of the last axis of the output.
            seed: of the run.
            policy: Keras mixed-precision policy.
            stddev: of truncated normal initial weights; None for Glorot-uniform ones.
        """
        super().__init__(name=path, dtype=policy)
        self.kernel = self.add_weight(
            name=f"{path}/kernel", shape=[inputs, outputs],
            initializer=glorot_uniform(seed, f"{path}/kernel") if stddev is None
            else truncated_normal(seed, f"{path}/kernel", stddev))
        self.bias = self.add_weight(name=f"{path}/bias", shape=[outputs], initializer="zeros")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [..., inputs] to [..., outputs]."""
        rows = tf.reshape(x, [-1, x.shape[-1]])
        y = affine(rows, tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias))
        return tf.reshape(y, [*dimensions(x)[:-1], y.shape[-1]])

    def product(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [..., inputs] to x W [..., outputs], for those who add the bias in passing."""
        kernel = tf.convert_to_tensor(self.kernel)
        y = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel)
        return tf.reshape(y, [*dimensions(x)[:-1], y.shape[-1]])


class GeluDense(Dense):
    """y = gelu(x W + b)."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [..., inputs] to [..., outputs]."""
        return gelu(self.product(x), tf.convert_to_tensor(self.bias))


class LayerNorm(tf_keras.layers.Layer):
    """Layer normalization over the last axis; statistics in float32, epsilon 1e-12."""

    def __init__(self, path: str, size: int, *, policy: str):
        super().__init__(name=path, dtype=policy)
        self.gamma = self.add_weight(
            name=f"{path}/gamma", shape=[size], initializer="ones", experimental_autocast=False)
        self.beta = self.add_weight(
            name=f"{path}/beta", shape=[size], initializer="zeros", experimental_autocast=False)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Normalizes [..., size]; the output has the layer's compute type."""
        return tf.cast(layer_norm(x, *self._parameters()), self.compute_dtype)

    def add_and_normalize(self, x: tf.Tensor, branch: tf.Tensor, bias: tf.Tensor, rate: float,
                          keys: tf.Tensor | None) -> tf.Tensor:
        """Normalizes x + dropout(branch + bias), both [B, L, size] of the compute type."""
        return residual_norm(x, branch, bias, *self._parameters(), rate, keys)

    def _parameters(self) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)


class EmbeddingTable(tf_keras.layers.Layer):
    """A float32 table of vectors, looked up by id."""

    def __init__(self, path: str, entries: int, size: int, *, seed: int, policy: str,
                 stddev: float):
        super().__init__(name=path, dtype=policy)
        self.table = self.add_weight(
            name=path, shape=[entries, size], initializer=truncated_normal(seed, path, stddev),
            experimental_autocast=False)

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [...] to float32 [..., size]."""
        return tf.gather(self.table, ids)

    def clear(self, columns: int) -> None:
        """Sets the first columns of every entry to zero."""
        values = self.table.numpy()
        values[:, :columns] = 0.0
        self.table.assign(values)


class DifferenceTable(tf_keras.layers.Layer):
    """A table that is another one plus a difference; its gradient reaches the difference alone."""

    def __init__(self, path: str, base: EmbeddingTable, *, policy: str):
        """Creates the difference, zeros, under the name `path`."""
        super().__init__(name=path, dtype=policy)
        # Behind a function, so that Keras doesn't count the other network's table as this one's.
        self._base = lambda: base
        self.difference = self.add_weight(
            name=path, shape=base.table.shape, initializer="zeros", experimental_autocast=False)

    @property
    def table(self) -> tf.Tensor:
        """The sum, float32 [entries, size]."""
        return tf.stop_gradient(tf.convert_to_tensor(self._base().table)) + self.difference

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [...] to float32 [..., size]."""
        base = tf.stop_gradient(tf.convert_to_tensor(self._base().table))
        return tf.gather(base, ids) + tf.gather(self.difference, ids)

    def clear(self, columns: int) -> None:
        """Sets the first columns of every entry to zero."""
        self._base().clear(columns)


def truncated_normal(seed: int, path: str, stddev: float):
    """Returns an initializer: normal, redrawn beyond two standard deviations."""
    def draw(shape, dtype=None, **_partition):
        return stddev * tf.random.stateless_truncated_normal(
            shape, seed=_pair(seed, path), dtype=dtype or tf.float32)
    return draw


def glorot_uniform(seed: int, path: str):
    """Returns an initializer: uniform within sqrt(6 / (inputs + outputs))."""
    def draw(shape, dtype=None, **_partition):
        limit = (6.0 / (shape[0] + shape[1])) ** 0.5
        return tf.random.stateless_uniform(
            shape, seed=_pair(seed, path), minval=-limit, maxval=limit, dtype=dtype or tf.float32)
    return draw


def _pair(seed: int, path: str) -> list[int]:
    key = stream_key(seed, f"initial/{path}")
    return [key & 0x7FFFFFFF, key >> 33]

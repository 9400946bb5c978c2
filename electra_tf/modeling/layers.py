"""The layers with weights that all networks consist of: dense, layer norm, embedding tables.

Layers create their weights in `__init__`. A weight's name is its full path in the checkpoints of
the reference implementation, such as "electra/encoder/layer_0/output/dense/kernel". Initial values
are a pure function of (seed, path).
"""

import dataclasses

import tensorflow as tf
import tf_keras

from electra_tf.core.settings import require_one_of
from electra_tf.modeling.fused import LAYER_NORM_EPSILON, affine, dimensions, gelu, layer_norm
from electra_tf.modeling.parameter_shapes import Shapes
from electra_tf.modeling.rng import stream_key

Pair = tuple[tf.Tensor, tf.Tensor]
"""A kernel [inputs, outputs] and its bias [outputs], or gamma and beta [size]."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """The options with which networks are created."""

    seed: int  # Seed of initial values, which are a function of it and of each weight's name.
    policy: str = "float32"
    """Keras mixed-precision policy: float32, mixed_bfloat16 or mixed_float16."""
    recompute: bool = False
    """If True, training keeps only the inputs of an encoder's layers and computes the rest again
    for the gradient (Chen et al., 2016)."""

    def __post_init__(self):
        require_one_of(("float32", "mixed_bfloat16", "mixed_float16"), "the policy of tf_keras "
                       "(tf_keras.mixed_precision.set_global_policy, before load)", self.policy)


class Dense(tf_keras.layers.Layer):
    """A dense layer, y = x W + b over the last axis, as one matmul of rank 2."""

    def __init__(self, path: str, inputs: int, outputs: int, options: LayerOptions,
                 stddev: float | None = None, *, has_bias: bool = True):
        """Creates W [inputs, outputs] and b [outputs], named after `path`.

        `stddev` is that of truncated normal initial values; None for Glorot-uniform ones. Without a
        bias, b is 0.
        """
        super().__init__(name=path, dtype=options.policy)
        self.kernel = self.add_weight(
            name=f"{path}/kernel", shape=[inputs, outputs],
            initializer=_initial(options.seed, f"{path}/kernel", stddev))
        self.bias = (self.add_weight(name=f"{path}/bias", shape=[outputs], initializer="zeros")
                     if has_bias else None)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [..., inputs] to [..., outputs]."""
        # [..., inputs] as rows, [M, inputs], and back.
        y = affine(tf.reshape(x, [-1, x.shape[-1]]), *self.parameters())
        return tf.reshape(y, [*dimensions(x)[:-1], y.shape[-1]])

    def parameters(self) -> Pair:
        """Returns W and b."""
        kernel = tf.convert_to_tensor(self.kernel)
        return kernel, (tf.zeros(kernel.shape[1:], kernel.dtype) if self.bias is None
                        else tf.convert_to_tensor(self.bias))


class GeluDense(Dense):
    """A dense layer with GELU, y = gelu(x W + b)."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [..., inputs] to [..., outputs]."""
        kernel, bias = self.parameters()
        return gelu(matmul(x, kernel), bias)


class NormedGeluDense(GeluDense):
    """The hidden layer of ModernBERT's heads, y = norm(gelu(x W))."""

    def __init__(self, path: str, inputs: int, outputs: int, options: LayerOptions):
        """Creates W [inputs, outputs] and the norm's gamma."""
        super().__init__(path, inputs, outputs, options, has_bias=False)
        self.norm = LayerNorm(f"{path}/LayerNorm", outputs, options, epsilon=1e-5, has_beta=False)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Maps [..., inputs] to [..., outputs]."""
        return self.norm(super().call(x))


class LayerNorm(tf_keras.layers.Layer):
    """Layer normalization over the last axis; statistics in float32."""

    def __init__(self, path: str, size: int, options: LayerOptions, *,
                 epsilon: float = LAYER_NORM_EPSILON, has_beta: bool = True):
        """Creates gamma and beta [size]; without beta, it is 0."""
        super().__init__(name=path, dtype=options.policy)
        self.epsilon = epsilon
        self.gamma = self.add_weight(
            name=f"{path}/gamma", shape=[size], initializer="ones", experimental_autocast=False)
        self.beta = self.add_weight(
            name=f"{path}/beta", shape=[size], initializer="zeros",
            experimental_autocast=False) if has_beta else None

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Normalizes [..., size]; the output has the layer's compute type."""
        return tf.cast(layer_norm(x, *self.parameters(), self.epsilon), self.compute_dtype)

    def parameters(self) -> Pair:
        """Returns gamma and beta, float32 [size]."""
        gamma = tf.convert_to_tensor(self.gamma)
        return gamma, tf.zeros_like(gamma) if self.beta is None else tf.convert_to_tensor(self.beta)


class EmbeddingTable(tf_keras.layers.Layer):
    """A float32 table with a vector of each id."""

    def __init__(self, path: str, entries: int, size: int, options: LayerOptions, stddev: float):
        super().__init__(name=path, dtype=options.policy)
        self.table = self.add_weight(
            name=path, shape=[entries, size], initializer=_initial(options.seed, path, stddev),
            experimental_autocast=False)

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [...] to float32 [..., size]."""
        return tf.gather(self.table, ids)


@dataclasses.dataclass(frozen=True)
class LayerFactory:
    """A factory of a network's layers, whose paths and shapes are in a table of weights."""

    shapes: Shapes
    options: LayerOptions
    stddev: float
    epsilon: float = LAYER_NORM_EPSILON

    def dense(self, path: str, kind: type[Dense] = Dense) -> Dense:
        """Creates a dense layer."""
        return kind(path, *self.shapes[f"{path}/kernel"], self.options, self.stddev,
                    has_bias=f"{path}/bias" in self.shapes)

    def norm(self, path: str) -> LayerNorm:
        """Creates a layer norm."""
        return LayerNorm(path, *self.shapes[f"{path}/gamma"], self.options, epsilon=self.epsilon,
                         has_beta=f"{path}/beta" in self.shapes)

    def table(self, path: str) -> EmbeddingTable:
        """Creates an embedding table."""
        return EmbeddingTable(path, *self.shapes[path], self.options, self.stddev)


def matmul(x: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Maps [..., inputs] to x W [..., outputs]; the caller's next chain adds the bias."""
    y = tf.matmul(tf.reshape(x, [-1, x.shape[-1]]), kernel)
    return tf.reshape(y, [*dimensions(x)[:-1], y.shape[-1]])


def _initial(seed: int, path: str, stddev: float | None):
    """Returns an initializer, truncated normal at two deviations; Glorot-uniform for None."""
    key = stream_key(seed, f"initial/{path}")
    pair = [key & 0x7FFFFFFF, key >> 33]

    def draw(shape, dtype=None, **_partition):
        if stddev is not None:
            return stddev * tf.random.stateless_truncated_normal(
                shape, seed=pair, dtype=dtype or tf.float32)
        # Glorot and Bengio, 2010: uniform within +-sqrt(6 / (inputs + outputs)).
        limit = (6.0 / (shape[0] + shape[1])) ** 0.5
        return tf.random.stateless_uniform(
            shape, seed=pair, minval=-limit, maxval=limit, dtype=dtype or tf.float32)

    return draw

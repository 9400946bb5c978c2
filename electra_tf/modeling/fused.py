"""Element-wise chains that XLA compiles into one pass over memory, with their gradients.

TensorFlow runs a chain like GELU as a dozen ops that each read and write the whole tensor, and
slowly in bfloat16. For a [4096, 1024] bfloat16 tensor on two cores: GELU 25 ms as ops and 2 ms
fused, its gradient 30 ms and 3 ms. Matrix products stay outside: on the CPU oneDNN's are faster
than XLA's. So do sums over rows, which are products with a row of ones (`products.sum_rows`).

All arithmetic is in float32; only what is stored has the tensor's own type.
"""

import math

import tensorflow as tf

from electra_tf.cost.devices import cpu_multiplies_bfloat16
from electra_tf.modeling.products import sum_rows
from electra_tf.modeling.randomness import keep_mask
from electra_tf.modeling.tracing import fused, is_compiled_as_a_whole, with_gradient

LAYER_NORM_EPSILON = 1e-12


@with_gradient
def gelu(x: tf.Tensor):
    """X * Phi(x), Phi the normal distribution function: GELU in its erf form, as BERT uses it.

    Args:
        x: floating, any shape (Hendrycks and Gimpel, 2016, section 2).

    Returns:
        Like `x`.
    """
    return _gelu(x), lambda upstream: _gelu_gradient(x, upstream)


@fused
def _gelu(x):
    wide = tf.cast(x, tf.float32)
    # TensorFlow Lite has an op for GELU, which it finds in these factors in this order alone.
    return tf.cast(0.5 * wide * (1.0 + tf.math.erf(wide / math.sqrt(2.0))), x.dtype)


@fused
def _gelu_gradient(x, upstream):
    wide = tf.cast(x, tf.float32)
    density = tf.exp(-0.5 * tf.square(wide)) / math.sqrt(2.0 * math.pi)
    slope = _normal_cdf(wide) + wide * density
    return tf.cast(tf.cast(upstream, tf.float32) * slope, x.dtype)


def _normal_cdf(x):
    return 0.5 * (1.0 + tf.math.erf(x / math.sqrt(2.0)))


def dropout(x: tf.Tensor, rate: float, keys: tf.Tensor | None) -> tf.Tensor:
    """Zeroes elements with probability `rate` and scales the others by 1 / (1 - rate).

    Args:
        x: floating [B, ...], static shape.
        rate: probability of zero, in [0, 1).
        keys: uint32 [B, 2], where the randomness comes from; None outside of training: `x` comes
            back unchanged.

    Returns:
        Like `x`.
    """
    if keys is None or rate == 0.0:
        return x

    @with_gradient
    def drop(x):
        return _dropped(x, keys, rate), lambda upstream: _dropped(upstream, keys, rate)

    return drop(x)


@fused
def _dropped(x, keys, rate):
    return tf.cast(_drop(tf.cast(x, tf.float32), keys, rate), x.dtype)


def _drop(wide, keys, rate):
    """Dropout of float32, inside a chain."""
    return wide if keys is None else tf.where(
        keep_mask(keys, wide.shape, rate), wide * (1.0 / (1.0 - rate)), 0.0)


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tf.Tensor:
    """Normalizes the last axis (Ba et al., 2016): (x - mean) / deviation * gamma + beta.

    Args:
        x: floating [..., H].
        gamma: float32 [H].
        beta: float32 [H].

    Returns:
        Like `x`; mean and deviation are computed in float32, epsilon 1e-12 under the root.
    """
    @with_gradient
    def normalize(x, gamma, beta):
        def gradient(upstream):
            d_x, gamma_terms = _layer_norm_gradient(x, gamma, upstream)
            return d_x, *_parameter_gradients(gamma_terms, upstream)

        return _layer_norm(x, gamma, beta), gradient

    return normalize(x, gamma, beta)


def residual_norm(x: tf.Tensor, branch: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor,
                  rate: float, keys: tf.Tensor | None) -> tf.Tensor:
    """layer_norm(x + dropout(branch)): what follows attention and feed-forward.

    For [32, 128, 256] on two cores 1.2 ms, and 2.0 ms for the gradient; apart 6 and 7.

    Args:
        x: floating [B, L, H], what went into the branch.
        branch: [B, L, H] of the same type, what came out of it.
        gamma: float32 [H].
        beta: float32 [H].
        rate: of dropout.
        keys: as for `dropout`.

    Returns:
        [B, L, H].
    """
    keys = keys if rate > 0.0 else None

    @with_gradient
    def normalize(x, branch, gamma, beta):
        total, output = _residual_norm(x, branch, gamma, beta, keys, rate)

        def gradient(upstream):
            d_x, d_branch, gamma_terms = _residual_norm_gradient(
                total, gamma, upstream, keys, rate)
            return d_x, d_branch, *_parameter_gradients(gamma_terms, upstream)

        return output, gradient

    return normalize(x, branch, gamma, beta)


@fused
def _layer_norm(x, gamma, beta):
    normalized, _ = _normalize(tf.cast(x, tf.float32))
    return tf.cast(normalized * gamma + beta, x.dtype)


@fused
def _layer_norm_gradient(x, gamma, upstream):
    d_x, gamma_terms = _norm_gradient(x, gamma, upstream)
    return tf.cast(d_x, x.dtype), gamma_terms


@fused
def _residual_norm(x, branch, gamma, beta, keys, rate):
    total = tf.cast(x, tf.float32) + _drop(tf.cast(branch, tf.float32), keys, rate)
    normalized, _ = _normalize(total)
    return tf.cast(total, x.dtype), tf.cast(normalized * gamma + beta, x.dtype)


@fused
def _residual_norm_gradient(total, gamma, upstream, keys, rate):
    d_total, gamma_terms = _norm_gradient(total, gamma, upstream)
    return (tf.cast(d_total, total.dtype), tf.cast(_drop(d_total, keys, rate), total.dtype),
            gamma_terms)


def _normalize(wide):
    """Returns the normalized rows and one over their deviations, float32."""
    centered = wide - tf.reduce_mean(wide, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
    inverse_deviation = tf.math.rsqrt(variance + LAYER_NORM_EPSILON)
    return centered * inverse_deviation, inverse_deviation


def _norm_gradient(x, gamma, upstream):
    """Returns the gradient of x, float32, and the terms [M, H] of gamma's."""
    normalized, inverse_deviation = _normalize(tf.cast(x, tf.float32))
    wide = tf.cast(upstream, tf.float32)
    scaled = wide * gamma
    d_x = inverse_deviation * (
        scaled - tf.reduce_mean(scaled, axis=-1, keepdims=True)
        - normalized * tf.reduce_mean(scaled * normalized, axis=-1, keepdims=True))
    return d_x, tf.reshape(wide * normalized, [-1, x.shape[-1]])


def _parameter_gradients(gamma_terms, upstream):
    beta_terms = tf.reshape(upstream, gamma_terms.shape)
    return sum_rows(gamma_terms), tf.cast(sum_rows(beta_terms), tf.float32)


def attention_weights(scores: tf.Tensor, rate: float, keys: tf.Tensor | None) -> tf.Tensor:
    """softmax(scores), then dropout (Vaswani et al., 2017, section 3.2.1).

    On CPUs with units for bfloat16 the softmax is oneDNN's, float32 within: 0.9 ms for
    [32, 4, 128, 128], fused 2.1. Elsewhere there would be TensorFlow's or XLA's in bfloat16.

    Args:
        scores: floating [B, A, L, L].
        rate: of dropout.
        keys: as for `dropout`.

    Returns:
        Like `scores`; rows sum to 1 on average.
    """
    keys = keys if rate > 0.0 else None

    @with_gradient
    def weigh(scores):
        if scores.dtype == tf.float32 or _has_bfloat16_softmax():
            shares = tf.nn.softmax(scores)
        else:
            shares = tf.cast(tf.nn.softmax(tf.cast(scores, tf.float32)), scores.dtype)
        dropped = shares if keys is None else _dropped(shares, keys, rate)
        return dropped, lambda upstream: _attention_gradient(shares, upstream, keys, rate)

    return weigh(scores)


def _has_bfloat16_softmax() -> bool:
    """Tells whether a softmax of bfloat16 is oneDNN's."""
    return (cpu_multiplies_bfloat16() and not is_compiled_as_a_whole()
            and not any(map(tf.config.list_logical_devices, ("GPU", "TPU"))))


@fused
def _attention_gradient(shares, upstream, keys, rate):
    wide = tf.cast(shares, tf.float32)
    d_shares = _drop(tf.cast(upstream, tf.float32), keys, rate)
    return tf.cast(
        wide * (d_shares - tf.reduce_sum(d_shares * wide, axis=-1, keepdims=True)), shares.dtype)

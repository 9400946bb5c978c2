"""GELU of a biased product, in one pass each for value and gradient."""

import math

import tensorflow as tf

from electra_tf.modeling.fused import biased, rounded
from electra_tf.modeling.products import sum_rows
from electra_tf.modeling.tracing import fused, is_inference, with_gradient

_SATURATED = 4.5
"""Beyond it GELU in bfloat16 is 0 or x, and its slope 0 or 1."""
_NORMAL_CDF = (
    3.98708575e-01, -6.59772631e-02, 9.58064123e-03, -1.03624846e-03, 8.12088540e-05,
    -4.43160318e-06, 1.58021422e-07, -3.28379337e-09, 2.99987204e-11)
_GELU_SLOPE = (
    7.97554600e-01, -2.64686864e-01, 5.83794434e-02, -8.71668779e-03, 9.17626834e-04,
    -6.81405729e-05, 3.47345341e-06, -1.14976358e-07, 2.21512074e-09, -1.87873358e-11)
"""P of `_half_plus_odd`, from the constant on. Of all that are 0 and 1 at the ends they have the
smallest largest error, of x Phi(x) and of the slope, at 1,500 places (by linear programming)."""


def gelu(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
    """GELU in its erf form, as BERT uses it, of a biased product: y * Phi(y) with y = x + bias.

    Phi is the normal distribution function (Hendrycks and Gimpel, 2016, section 2). In bfloat16 it
    is a polynomial: GELU is off by 7e-5 at most (from |y| = 14 on by 5e-6 |y|) and its slope by
    1.4e-4, where rounding to bfloat16 adds 4e-3 to a slope of 1. For [2048, 1024] on one core GELU
    and its gradient take 0.5 ms each, with erf and the density 1.1 and 2.0.

    Args:
        x: floating [..., H].
        bias: floating [H].

    Returns:
        Like `x`.
    """
    @with_gradient
    def activate(x, bias):
        def gradient(upstream):
            d_x = _gelu_gradient(x, bias, upstream)
            return d_x, tf.cast(sum_rows(tf.reshape(d_x, [-1, x.shape[-1]])), bias.dtype)

        return _gelu(x, bias), gradient

    return activate(x, bias)


@fused
def _gelu(x, bias):
    wide = biased(x, bias)
    if x.dtype == tf.bfloat16 and not is_inference():
        return rounded(wide * _half_plus_odd(wide, _NORMAL_CDF), x.dtype)
    # TensorFlow Lite has an op for GELU, which it finds in these factors in this order alone.
    return tf.cast(0.5 * wide * (1.0 + tf.math.erf(wide / math.sqrt(2.0))), x.dtype)


@fused
def _gelu_gradient(x, bias, upstream):
    wide = biased(x, bias)
    if x.dtype == tf.bfloat16:
        slope = _half_plus_odd(wide, _GELU_SLOPE)
    else:
        density = tf.exp(-0.5 * tf.square(wide)) / math.sqrt(2.0 * math.pi)
        slope = 0.5 * (1.0 + tf.math.erf(wide / math.sqrt(2.0))) + wide * density
    return rounded(tf.cast(upstream, tf.float32) * slope, x.dtype)


def _half_plus_odd(x, coefficients):
    """Returns 1/2 + x P(x^2) for |x| up to `_SATURATED`; beyond it 0 or 1 as at its ends."""
    x = tf.clip_by_value(x, -_SATURATED, _SATURATED)
    square = tf.square(x)
    value = tf.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * square + coefficient
    return 0.5 + x * value

"""The activation of BERT and ELECTRA: GELU in its erf form (Hendrycks and Gimpel, 2016)."""

import tensorflow as tf


def gelu(x: tf.Tensor) -> tf.Tensor:
    """X * Phi(x), Phi the normal distribution function; same shape and type as `x`."""
    return tf.nn.gelu(x, approximate=False)

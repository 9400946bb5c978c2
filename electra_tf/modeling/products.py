"""Matrix products with a bias, whose gradients are matrix products only.

The gradient of a bias is the sum of the upstream gradient's rows. TensorFlow's `BiasAddGrad` takes
1.7 ms for [4096, 1024] in bfloat16 on two cores, a reduction compiled by XLA 10 ms, the product
with a row of ones 0.6 ms, and it adds up in float32.
"""

import tensorflow as tf


@tf.custom_gradient
def affine(x: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor):
    """X W + b.

    Args:
        x: floating [M, inputs].
        kernel: [inputs, outputs] of the same type.
        bias: [outputs] of the same type.

    Returns:
        [M, outputs].
    """
    def gradient(upstream):
        return (tf.matmul(upstream, kernel, transpose_b=True),
                tf.matmul(x, upstream, transpose_a=True), sum_rows(upstream))

    return tf.nn.bias_add(tf.matmul(x, kernel), bias), gradient


@tf.custom_gradient
def affine_transposed(x: tf.Tensor, table: tf.Tensor, bias: tf.Tensor):
    """X T^t + b: every row of `x` against every row of a table.

    Args:
        x: floating [M, inputs].
        table: [outputs, inputs] of the same type.
        bias: [outputs] of the same type.

    Returns:
        [M, outputs].
    """
    def gradient(upstream):
        return (tf.matmul(upstream, table),
                tf.matmul(upstream, x, transpose_a=True), sum_rows(upstream))

    return tf.nn.bias_add(tf.matmul(x, table, transpose_b=True), bias), gradient


def sum_rows(rows: tf.Tensor) -> tf.Tensor:
    """Adds up [M, H] over its rows: [H]."""
    ones = tf.ones([1, rows.shape[0]], rows.dtype)
    return tf.squeeze(tf.matmul(ones, rows), axis=0)

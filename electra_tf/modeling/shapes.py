"""Shapes of tensors of which some dimensions aren't known before they are computed."""

import tensorflow as tf


def dimensions(x: tf.Tensor) -> list[int | tf.Tensor]:
    """Returns the size of every axis: a number where it is known, int32 [] elsewhere."""
    sizes = tf.shape(x)
    return [sizes[axis] if size is None else size for axis, size in enumerate(x.shape)]

"""Runs a network on chunks of rows; memory does not grow with the number of rows."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

TOKENS = 4096
"""Positions of a chunk, padding included: 8 rows of 512 or 128 rows of 32. Larger chunks are not
faster. The attention scores of 12 heads take 0.1 GB."""


def rows_of(length: tf.Tensor) -> tf.Tensor:
    """Returns the number of rows of `length` positions that a chunk holds; both int32 []."""
    return tf.maximum(TOKENS // tf.maximum(length, 1), 1)


def in_chunks(compute: Callable[..., Any], rows: Sequence[tf.Tensor], most: tf.Tensor,
              outputs: Any) -> Any:
    """Applies a function to tensors [R, ...], at most `most` rows at a time, and joins the results.

    `compute` maps tensors of r rows to a structure of tensors of r rows; `outputs` has their
    `tf.TensorSpec`s. `most` is int32 [].
    """
    count = tf.shape(rows[0])[0]
    chunks = tf.maximum(-(-count // most), 1)
    size = -(-count // chunks)

    def cut(values: tf.Tensor) -> tf.Tensor:
        # Repeated rows fill the last chunk; `joined` drops them.
        filled = tf.gather(values, tf.range(chunks * size) % tf.maximum(count, 1))
        return tf.reshape(filled, tf.concat([[chunks, size], tf.shape(values)[1:]], axis=0))

    def joined(values: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
        flat = tf.reshape(values, tf.concat([[chunks * size], tf.shape(values)[2:]], axis=0))
        return tf.ensure_shape(flat[:count], spec.shape)

    found = tf.map_fn(lambda part: compute(*part), tuple(map(cut, rows)),
                      parallel_iterations=1, fn_output_signature=outputs)
    return tf.nest.map_structure(joined, found, outputs)

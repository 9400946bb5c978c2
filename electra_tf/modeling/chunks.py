"""Rows through a network, a part of them at a time: memory doesn't grow with their number."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

TOKENS = 4096
"""Positions of a part, padding among them: 8 rows of 512 or 128 of 32 keep the cores as busy as
more do, and the attention scores of 12 heads take 0.1 GB."""


def rows_of(length: tf.Tensor) -> tf.Tensor:
    """Returns how many rows of a length, int32 [], are a part."""
    return tf.maximum(TOKENS // tf.maximum(length, 1), 1)


def in_chunks(compute: Callable[..., Any], rows: Sequence[tf.Tensor], most: tf.Tensor,
              outputs: Any) -> Any:
    """Returns what a function would for tensors [R, ...], called on at most `most` rows at a time.

    It maps rows to outputs, as many of them; `outputs` are their `tf.TensorSpec`s.
    """
    count = tf.shape(rows[0])[0]
    chunks = tf.maximum(-(-count // most), 1)
    size = -(-count // chunks)

    def cut(values: tf.Tensor) -> tf.Tensor:
        # What fills up the last chunk is computed and dropped.
        filled = tf.gather(values, tf.range(chunks * size) % tf.maximum(count, 1))
        return tf.reshape(filled, tf.concat([[chunks, size], tf.shape(values)[1:]], axis=0))

    def joined(values: tf.Tensor, spec: tf.TensorSpec) -> tf.Tensor:
        flat = tf.reshape(values, tf.concat([[chunks * size], tf.shape(values)[2:]], axis=0))
        return tf.ensure_shape(flat[:count], spec.shape)

    found = tf.map_fn(lambda part: compute(*part), tuple(map(cut, rows)),
                      parallel_iterations=1, fn_output_signature=outputs)
    return tf.nest.map_structure(joined, found, outputs)

"""Splits a batch into parts, which run in parallel, and into rounds, which save memory."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

RowsFunction = Callable[[Any, tf.Tensor], Any]
"""Maps a structure of tensors [rows, ...] and the index int64 [] of its first row in the batch."""
NOT_INLINED = {"_noinline": True}
"""Attribute of a traced function, so that all parts share the start-up and memory of one graph."""


def concat_parts(function: RowsFunction, inputs: Any, parts: int) -> Any:
    """Runs a function on all parts in parallel and concatenates the tensors of its results.

    `inputs` is a structure of tensors [B, ...], B a multiple of `parts`.
    """
    traced = tf.function(function, autograph=False, experimental_attributes=NOT_INLINED)
    size = tf.nest.flatten(inputs)[0].shape[0] // parts
    results = [traced(tf.nest.map_structure(
        lambda rows, first=first: rows[first:first + size], inputs), tf.constant(first, tf.int64))
        for first in range(0, parts * size, size)]
    return tf.nest.map_structure(lambda *values: tf.concat(values, axis=0), *results)


def sum_parts(function: RowsFunction, inputs: Any, *, rounds: int, parts: int) -> Any:
    """Returns the sum of a function's results, a structure of tensors, over a whole batch.

    The rounds run one after the other, the parts of each in parallel. `inputs` is a structure of
    tensors [B, ...], B a multiple of `rounds * parts`. A part has consecutive rows, a round of it
    every `rounds`-th of them. If a compiler splits the batch over cores, each core then has rows of
    every round.
    """
    traced = tf.function(function, autograph=False, experimental_attributes=NOT_INLINED)
    size = tf.nest.flatten(inputs)[0].shape[0] // parts
    split = tf.nest.map_structure(
        lambda rows: tf.reshape(rows, [parts, size // rounds, rounds, *rows.shape[1:]]), inputs)

    def run_round(index: tf.Tensor | int) -> Any:
        results = [traced(
            tf.nest.map_structure(lambda rows, part=part: rows[part, :, index], split),
            tf.cast(part * size + index, tf.int64)) for part in range(parts)]
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *results)

    if rounds == 1:
        return run_round(0)
    _, sums = tf.while_loop(
        lambda index, _: index < rounds,
        lambda index, sums: (index + 1, tf.nest.map_structure(tf.add, sums, run_round(index))),
        (tf.constant(1), run_round(0)))
    return sums


def largest_divisor(number: int, limit: int) -> int:
    """Returns the largest divisor of `number` up to `limit`."""
    return max(divisor for divisor in range(1, limit + 1) if number % divisor == 0)

"""A batch in equal parts: one after the other to save memory, side by side for speed."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

RowsFn = Callable[[Any, tf.Tensor], Any]
"""From a structure of tensors [rows, ...] and the index int64 [] of its first row in the batch."""


def by_part(run: RowsFn, inputs: Any, count: int) -> Callable[[tf.Tensor | int], Any]:
    """Lets a function of a batch's rows be called by number of part; it is traced once.

    Args:
        run: what to call. Calls that don't depend on each other run at the same time.
        inputs: structure of tensors [B, ...], B a multiple of `count`.
        count: parts.

    Returns:
        A function from a number below `count`, int32 [], to what `run` returns.
    """
    rows = tf.nest.flatten(inputs)[0].shape[0] // count
    parts = tf.nest.map_structure(
        lambda whole: tf.reshape(whole, [count, rows, *whole.shape[1:]]), inputs)
    # A function that stays one costs the start-up and the memory of one graph, not of `count`.
    traced = tf.function(run, autograph=False, experimental_attributes={"_noinline": True})

    def run_part(number: tf.Tensor | int) -> Any:
        return traced(tf.nest.map_structure(lambda part: part[number], parts),
                      tf.cast(number * rows, tf.int64))

    return run_part


def joined(run: RowsFn, inputs: Any, parts: int) -> Any:
    """Runs a function on all parts side by side and joins its results end to end.

    Args:
        run: returns a structure of tensors whose first dimensions belong to the part.
        inputs: structure of tensors [B, ...], B a multiple of `parts`.
        parts: how many.
    """
    run_part = by_part(run, inputs, parts)
    results = [run_part(number) for number in range(parts)]
    return tf.nest.map_structure(lambda *values: tf.concat(values, axis=0), *results)


def total(run: RowsFn, inputs: Any, *, rounds: int, parts: int) -> Any:
    """Adds up what a function returns over a whole batch.

    Args:
        run: returns a structure of tensors.
        inputs: structure of tensors [B, ...], B a multiple of `rounds * parts`.
        rounds: one after the other.
        parts: of every round, side by side.
    """
    run_part = by_part(run, inputs, rounds * parts)

    def run_round(index: tf.Tensor | int) -> Any:
        terms = [run_part(index * parts + part) for part in range(parts)]
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *terms)

    def add(index: tf.Tensor, sums: Any) -> tuple[tf.Tensor, Any]:
        return index + 1, tf.nest.map_structure(tf.add, sums, run_round(index))

    if rounds == 1:
        return run_round(0)
    _, sums = tf.while_loop(lambda index, _sums: index < rounds, add,
                            (tf.constant(1), run_round(0)))
    return sums

"""Splits a batch into rounds, which save memory, and into parts, which run in parallel."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

RowsFn = Callable[[Any, tf.Tensor], Any]
"""Maps a structure of tensors [rows, ...] and the index int64 [] of its first row in the batch."""


def joined(run: RowsFn, inputs: Any, parts: int) -> Any:
    """Runs a function on all parts in parallel and concatenates the tensors of its results.

    `inputs` is a structure of tensors [B, ...], B a multiple of `parts`.
    """
    run_part = _by_part(run, inputs, parts)
    results = [run_part(number, 0) for number in range(parts)]
    return tf.nest.map_structure(lambda *values: tf.concat(values, axis=0), *results)


def total(run: RowsFn, inputs: Any, *, rounds: int, parts: int) -> Any:
    """Returns the sum of a function's results, a structure of tensors, over a whole batch.

    The rounds run one after the other, the parts of each in parallel. The rows of a call are
    `rounds` apart in the batch. `inputs` is a structure of tensors [B, ...], B a multiple of
    `rounds * parts`.
    """
    run_part = _by_part(run, inputs, parts, rounds)

    def run_round(index: tf.Tensor | int) -> Any:
        terms = [run_part(part, index) for part in range(parts)]
        return tf.nest.map_structure(lambda *values: tf.add_n(values), *terms)

    def add(index: tf.Tensor, sums: Any) -> tuple[tf.Tensor, Any]:
        return index + 1, tf.nest.map_structure(tf.add, sums, run_round(index))

    if rounds == 1:
        return run_round(0)
    _, sums = tf.while_loop(lambda index, _sums: index < rounds, add,
                            (tf.constant(1), run_round(0)))
    return sums


def _by_part(run: RowsFn, inputs: Any, parts: int,
             rounds: int = 1) -> Callable[[int, tf.Tensor | int], Any]:
    """Returns a function of the numbers of a part and a round; `run` is traced once.

    A part has consecutive rows, a round of it every `rounds`-th of them. If a compiler splits the
    batch over cores, each core then has rows of every round.
    """
    rows = tf.nest.flatten(inputs)[0].shape[0] // parts
    split = tf.nest.map_structure(
        lambda whole: tf.reshape(whole, [parts, rows // rounds, rounds, *whole.shape[1:]]), inputs)
    # Without inlining, all parts share the start-up and the memory of one graph.
    traced = tf.function(run, autograph=False, experimental_attributes={"_noinline": True})
    return lambda number, index: traced(
        tf.nest.map_structure(lambda whole: whole[number, :, index], split),
        tf.cast(number * rows + index, tf.int64))

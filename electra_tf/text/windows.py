"""Questions with sliding windows over their contexts as rows (BERT, section 4.2)."""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.text.rows import RowEncoder, Tokens


class Windows(NamedTuple):
    """The parts of the contexts of B questions in W rows."""

    example: tf.Tensor  # int32 [W]: index of the question.
    first: tf.Tensor  # int32 [W]: the part's first piece, among those of its context.
    sizes: tf.Tensor  # int32 [W]: number of its pieces.
    position: tf.Tensor  # int32 [W]: column of its first piece in the row.
    is_best: tf.Tensor
    """bool [sum of sizes]: True in the question's window with the most context around the piece.
    The side with less context counts, then the longer window, then the earlier one."""


def encode(encoder: RowEncoder, queries: tf.RaggedTensor, contexts: tf.RaggedTensor,
           context_of: tf.Tensor, *, stride: int) -> tuple[Tokens, Windows]:
    """Returns windows of questions as rows, [CLS] question [SEP] part of the context [SEP].

    Queries are int32 [B, (pieces)], contexts int32 [C, (pieces)], and `context_of`, int32 [B], is
    the index of each query's context. Windows of one question begin `stride` pieces apart.
    """
    query_sizes = tf.cast(queries.row_lengths(), tf.int32)
    lengths = tf.gather(tf.cast(contexts.row_lengths(), tf.int32), context_of)
    starts = tf.gather(tf.cast(contexts.row_starts(), tf.int32), context_of)
    capacity = encoder.max_length - 3 - query_sizes
    step = tf.minimum(stride, capacity)
    numbers = tf.ragged.range(1 + -(-tf.maximum(lengths - capacity, 0) // step))
    example = tf.cast(numbers.value_rowids(), tf.int32)
    first = numbers.flat_values * tf.gather(step, example)
    sizes = tf.minimum(tf.gather(capacity, example), tf.gather(lengths, example) - first)
    begin = tf.gather(starts, example) + first
    parts = tf.gather(contexts.flat_values, tf.ragged.range(begin, begin + sizes))
    return encoder.rows([tf.gather(queries, example), parts]), Windows(
        example, first, sizes, 2 + tf.gather(query_sizes, example),
        _is_best(example, first, sizes, lengths))


def _is_best(example: tf.Tensor, first: tf.Tensor, sizes: tf.Tensor,
             lengths: tf.Tensor) -> tf.Tensor:
    """Returns `Windows.is_best`; `lengths`, int32 [B], are the contexts'."""
    columns = tf.ragged.range(sizes)
    window = tf.cast(columns.value_rowids(), tf.int32)
    column, size = columns.flat_values, tf.gather(sizes, window)
    before = tf.gather(tf.cumsum(lengths, exclusive=True), example)
    piece = tf.gather(before + first, window) + column
    # BERT adds 0.01 times the size; whole hundredths compare exactly.
    score = 100 * tf.minimum(column, size - 1 - column) + size
    pieces = tf.reduce_sum(lengths)
    best_score = tf.math.unsorted_segment_max(score, piece, pieces)
    candidates = tf.where(score == tf.gather(best_score, piece), window, tf.size(sizes))
    return candidates == tf.gather(
        tf.math.unsorted_segment_min(candidates, piece, pieces), piece)

"""Questions as windows over their contexts (BERT, section 4.2)."""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.text.rows import RowEncoder, Tokens, head


class Windows(NamedTuple):
    """Where the parts of the contexts of B questions come from, W rows."""

    example: tf.Tensor  # int32 [W]: which question's.
    first: tf.Tensor  # int32 [W]: the part's first piece, among those of its context.
    sizes: tf.Tensor  # int32 [W]: its pieces.
    position: tf.Tensor  # int32 [W]: column of its first piece in the row.
    is_best: tf.Tensor
    """bool [sum of sizes]: no other window of the question shows more on both sides of the piece.
    More on the poorer side counts, then the longer window, then the earlier one."""


def encode(encoder: RowEncoder, queries: tf.RaggedTensor, contexts: tf.RaggedTensor,
           context_of: tf.Tensor, *, stride: int) -> tuple[Tokens, Windows]:
    """Returns windows of questions as rows, [CLS] question [SEP] part of the context [SEP].

    Queries, int32 [B, (pieces)], have the contexts `context_of`, int32 [B], of int32 [C, (pieces)].
    Windows of one question begin `stride` pieces apart.
    """
    query_sizes = tf.cast(queries.row_lengths(), tf.int32)
    lengths = tf.gather(tf.cast(contexts.row_lengths(), tf.int32), context_of)
    starts = tf.gather(tf.cast(contexts.row_starts(), tf.int32), context_of)
    room = encoder.max_length - 3 - query_sizes
    step = tf.minimum(stride, room)
    numbers = tf.ragged.range(1 + -(-tf.maximum(lengths - room, 0) // step))
    example = tf.cast(numbers.value_rowids(), tf.int32)
    first = numbers.flat_values * tf.gather(step, example)
    sizes = tf.minimum(tf.gather(room, example), tf.gather(lengths, example) - first)
    begin = tf.gather(starts, example) + first
    parts = tf.gather(contexts.flat_values, tf.ragged.range(begin, begin + sizes))
    asked = tf.gather(head(queries, query_sizes), example)
    return encoder.rows([asked, parts]), Windows(
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
    # In hundredths, so that ties are ties.
    seen = 100 * tf.minimum(column, size - 1 - column) + size
    pieces = tf.reduce_sum(lengths)
    most = tf.math.unsorted_segment_max(seen, piece, pieces)
    candidates = tf.where(seen == tf.gather(most, piece), window, tf.size(sizes))
    return candidates == tf.gather(
        tf.math.unsorted_segment_min(candidates, piece, pieces), piece)

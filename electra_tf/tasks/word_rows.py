"""Tagged words as pieces and rows, for training and inside the graphs of exports alike.

A text that is too long becomes several rows, cut between words: each takes as many words as fit.
"""

import tensorflow as tf

from electra_tf.text.tokenizer import Tokenizer


def word_pieces(tokenizer: Tokenizer, words: tf.Tensor, unknown: int,
                room: int) -> tf.RaggedTensor:
    """Returns the pieces of words, at least one each and no more than a row holds.

    Args:
        tokenizer: cuts them.
        words: string [W].
        unknown: id that stands for a word of which nothing is left after cleaning.
        room: most pieces of a row.

    Returns:
        int32 [W, (pieces)].
    """
    pieces = tokenizer.tokenize(words)
    lengths = tf.cast(pieces.row_lengths(), tf.int32)
    table = tf.concat([[unknown], pieces.flat_values], axis=0)
    begin = tf.where(lengths == 0, 0, 1 + tf.cast(pieces.row_starts(), tf.int32))
    return tf.gather(table, tf.ragged.range(begin, begin + tf.clip_by_value(lengths, 1, room)))


def row_starts(sizes: tf.Tensor, text_splits: tf.Tensor, room: int) -> tf.Tensor:
    """Returns the first word of every row, int32 [R].

    All texts are cut side by side, a row of each at a time, so that the steps are as many as the
    longest text has rows, and a text's rows depend on nothing but its own words.

    Args:
        sizes: int32 [W], pieces of every word of all texts; none above `room`.
        text_splits: int32 [B + 1], number of words before every text, and W.
        room: most pieces of a row.

    Example:
        >>> row_starts(tf.constant([3, 3, 3, 3, 1]), tf.constant([0, 4, 5]), 7).numpy().tolist()
        [0, 2, 4]
    """
    ends = tf.cumsum(sizes)
    before = tf.concat([[0], ends], axis=0)
    stops = text_splits[1:]

    def next_rows(first: tf.Tensor) -> tf.Tensor:
        fits = tf.searchsorted(ends, tf.gather(before, first) + room, side="right")
        return tf.minimum(fits, stops)

    def step(number: tf.Tensor, first: tf.Tensor, found: tf.TensorArray):
        return number + 1, next_rows(first), found.write(number, first)

    number, first, found = step(tf.constant(0), text_splits[:-1], tf.TensorArray(
        tf.int32, size=1, dynamic_size=True, element_shape=[None]))
    _, _, found = tf.while_loop(lambda _, first, __: tf.reduce_any(first < stops), step,
                                [number, first, found], parallel_iterations=1)
    rows = tf.transpose(found.stack())
    return tf.boolean_mask(rows, rows < stops[:, tf.newaxis])

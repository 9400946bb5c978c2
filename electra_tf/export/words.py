"""Words of texts in rows of the encoder's length, and the way back from rows to words."""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.export.texts import Texts, Tokens, head
from electra_tf.tasks import word_rows


class WordRows(NamedTuple):
    """What the encoder reads, and where the W words of all texts begin in it."""

    tokens: Tokens
    """R rows."""
    first_piece: tf.Tensor
    """int32 [W, 2]: row and column of every word's first piece."""
    sizes: tf.Tensor
    """int32 [W]: pieces of every word, all in one row."""


class Words(NamedTuple):
    """Words of B texts."""

    texts: tf.RaggedTensor
    """string [B, (words)], as written."""
    pieces: tf.RaggedTensor
    """int32 [W, (pieces)], at least 1 each: of all words of all texts."""


def split_at_spaces(texts: Texts, column: tf.Tensor) -> Words:
    """Takes what stands between spaces for a word, as in files of tagged words.

    A word of which nothing is left after cleaning is an [UNK].
    """
    words = tf.strings.split(column)
    return Words(words, word_rows.word_pieces(
        texts.tokenizer, words.flat_values, texts.vocabulary.unk_id, texts.max_length - 2))


def split_as_tokenized(texts: Texts, column: tf.Tensor) -> Words:
    """Takes punctuation marks and Chinese characters for words too, as WordPiece does.

    A word of which nothing is left after cleaning is left out.
    """
    words = texts.tokenizer.tokenize_words(column)
    lengths = tf.cast(words.pieces.row_lengths(), tf.int32)
    kept = tf.squeeze(tf.where(lengths > 0), axis=1)
    written = tf.RaggedTensor.from_value_rowids(
        tf.gather(words.texts.flat_values, kept), tf.gather(words.texts.value_rowids(), kept),
        nrows=words.texts.nrows(), validate=False)
    limits = tf.minimum(tf.gather(lengths, kept), texts.max_length - 2)
    return Words(written, head(tf.gather(words.pieces, kept), limits))


def in_rows(texts: Texts, words: Words) -> WordRows:
    """Lays words out in rows, as training does."""
    sizes = tf.cast(words.pieces.row_lengths(), tf.int32)
    first_words = word_rows.row_starts(
        sizes, tf.cast(words.texts.row_splits, tf.int32), texts.max_length - 2)
    before = tf.cumsum(sizes, exclusive=True)
    ends = tf.concat([before, [tf.reduce_sum(sizes)]], axis=0)
    row_starts = tf.gather(ends, first_words)
    pieces = tf.RaggedTensor.from_row_starts(words.pieces.flat_values, row_starts,
                                           validate=False)
    row = tf.searchsorted(first_words, tf.range(tf.size(sizes)), side="right") - 1
    column = 1 + before - tf.gather(row_starts, row)
    return WordRows(texts.rows([pieces]), tf.stack([row, column], axis=1), sizes)


def per_text(words: Words, values: tf.Tensor, fill: tf.Tensor) -> tf.Tensor:
    """Turns values [W] of words into [B, most words of a text], filled up with `fill`."""
    return words.texts.with_flat_values(values).to_tensor(fill)

"""Words of texts in rows of the encoder's length, and the way back from rows to words.

A text that is too long becomes several rows, cut between words.
"""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.serving.texts import Texts, Tokens, head


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
    pieces = texts.tokenizer.tokenize(words.flat_values)
    lengths = tf.cast(pieces.row_lengths(), tf.int32)
    table = tf.concat([[texts.vocabulary.unk_id], pieces.flat_values], axis=0)
    begin = tf.where(lengths == 0, 0, 1 + tf.cast(pieces.row_starts(), tf.int32))
    kept = tf.clip_by_value(lengths, 1, texts.max_length - 2)
    return Words(words, tf.gather(table, tf.ragged.range(begin, begin + kept)))


def split_as_tokenized(texts: Texts, column: tf.Tensor) -> Words:
    """Takes punctuation marks and Chinese characters for words too, as WordPiece does.

    A word of which nothing is left after cleaning is left out.
    """
    pieces = texts.tokenizer.tokenize_with_words(column)
    text_of_piece = pieces.ids.value_rowids()
    starts, ends = pieces.starts.flat_values, pieces.ends.flat_values
    same_text = text_of_piece[1:] == text_of_piece[:-1]
    continues = same_text & (starts[1:] == starts[:-1])
    begins = tf.concat([tf.ones_like(starts[:1], tf.bool), ~continues], axis=0)
    firsts = tf.squeeze(tf.where(begins), axis=1)
    cleaned = tf.strings.unicode_transcode(column, "UTF-8", "UTF-8", errors="ignore")
    of_text = tf.gather(text_of_piece, firsts)
    start = tf.gather(starts, firsts)
    written = tf.strings.substr(tf.gather(cleaned, of_text), start,
                                tf.gather(ends, firsts) - start)
    by_word = tf.RaggedTensor.from_value_rowids(
        pieces.ids.flat_values, tf.cumsum(tf.cast(begins, tf.int64)) - 1,
        nrows=tf.cast(tf.size(firsts), tf.int64))
    limits = tf.minimum(tf.cast(by_word.row_lengths(), tf.int32), texts.max_length - 2)
    return Words(tf.RaggedTensor.from_value_rowids(written, of_text, nrows=pieces.ids.nrows()),
                 head(by_word, limits))


def in_rows(texts: Texts, words: Words) -> WordRows:
    """Lays words out in rows.

    A text that fits is one row. In any other a word belongs to the row that its first piece's
    number, divided by a row's room less the longest word, tells: none is cut apart.
    """
    room = texts.max_length - 2
    sizes = tf.cast(words.pieces.row_lengths(), tf.int32)
    text_of_word = tf.cast(words.texts.value_rowids(), tf.int32)
    before = tf.cumsum(sizes, exclusive=True)
    # Pieces before every text, and one more for the end.
    splits = tf.concat([before, [tf.reduce_sum(sizes)]], axis=0)
    text_starts = tf.gather(splits, tf.cast(words.texts.row_splits, tf.int32))
    totals = text_starts[1:] - text_starts[:-1]
    start = before - tf.gather(text_starts, text_of_word)
    block = room + 1 - tf.reduce_max(tf.concat([sizes, [1]], axis=0))
    window = tf.where(tf.gather(totals, text_of_word) <= room, 0, start // block)
    same_row = (text_of_word[1:] == text_of_word[:-1]) & (window[1:] == window[:-1])
    begins = tf.concat([tf.ones_like(sizes[:1], tf.bool), ~same_row], axis=0)
    row = tf.cumsum(tf.cast(begins, tf.int32)) - 1
    row_starts = tf.boolean_mask(before, begins)
    pieces = tf.RaggedTensor.from_value_rowids(
        words.pieces.flat_values, tf.cast(tf.repeat(row, sizes), tf.int64),
        nrows=tf.cast(tf.size(row_starts), tf.int64))
    column = 1 + before - tf.gather(row_starts, row)
    return WordRows(texts.rows([pieces]), tf.stack([row, column], axis=1), sizes)


def per_text(words: Words, values: tf.Tensor, fill: tf.Tensor) -> tf.Tensor:
    """Turns values [W] of words into [B, most words of a text], filled up with `fill`."""
    return words.texts.with_flat_values(values).to_tensor(fill)

"""Words of texts in rows of the encoder's length, and values of words by text."""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.text.rows import RowEncoder, Tokens, first_values


class WordRows(NamedTuple):
    """R rows for the encoder, and the positions of the W words of all texts in them."""

    tokens: Tokens  # [R, L].
    first_piece: tf.Tensor  # int32 [W, 2]: row and column of every word's first piece.
    sizes: tf.Tensor  # int32 [W]: number of pieces of every word, all in one row.


class Words(NamedTuple):
    """Words of B texts."""

    texts: tf.RaggedTensor  # string [B, (words)], as written.
    pieces: tf.RaggedTensor  # int32 [W, (pieces)], at least 1 each: of all words of all texts.
    lengths: tf.Tensor  # int32 [W]: numbers of pieces before words were cut to fit a row.


def tokenize(encoder: RowEncoder, words: tf.RaggedTensor) -> Words:
    """Returns words, string [B, (words)], with pieces; one that becomes empty is an [UNK].

    The words of texts in files of tags are those between spaces, `tf.strings.split(texts)`.
    """
    pieces = encoder.tokenizer.tokenize(words.flat_values)
    lengths = tf.cast(pieces.row_lengths(), tf.int32)
    # An empty word takes the [UNK] before all pieces; a long one keeps its first pieces.
    ids = tf.concat([[encoder.vocabulary.unk_id], pieces.flat_values], axis=0)
    begin = tf.where(lengths == 0, 0, 1 + tf.cast(pieces.row_starts(), tf.int32))
    sizes = tf.clip_by_value(lengths, 1, encoder.max_length - 2)
    return Words(words, tf.gather(ids, tf.ragged.range(begin, begin + sizes)), lengths)


def split_as_tokenized(encoder: RowEncoder, column: tf.Tensor) -> Words:
    """Returns the tokenizer's words of texts, string [B], without those that become empty."""
    words = encoder.tokenizer.tokenize_words(column)
    lengths = tf.cast(words.pieces.row_lengths(), tf.int32)
    # Drops the words without pieces from their texts, string [B, (words)].
    indices = tf.squeeze(tf.where(lengths > 0), axis=1)
    texts = tf.RaggedTensor.from_value_rowids(
        tf.gather(words.texts.flat_values, indices), tf.gather(words.texts.value_rowids(), indices),
        nrows=words.texts.nrows(), validate=False)
    lengths = tf.gather(lengths, indices)
    limits = tf.minimum(lengths, encoder.max_length - 2)
    return Words(texts, first_values(tf.gather(words.pieces, indices), limits), lengths)


def pack_in_rows(encoder: RowEncoder, words: Words) -> WordRows:
    """Returns rows of as many words as fit; the rows of a text do not depend on other texts."""
    # Running sums of pieces over the words of all texts, and each text's first word and end.
    max_pieces = encoder.max_length - 2
    sizes = tf.cast(words.pieces.row_lengths(), tf.int32)
    before = tf.concat([[0], tf.cumsum(sizes)], axis=0)  # Pieces before every word.
    text_splits = tf.cast(words.texts.row_splits, tf.int32)
    stops = text_splits[1:]

    # Round r makes row r of every text; a text that ends earlier has empty rows after it.
    def next_rows(index: tf.Tensor, first: tf.Tensor, firsts: tf.TensorArray):
        """Makes the next row of every text, whose first word is `first`, int32 [B]."""
        end = tf.searchsorted(before[1:], tf.gather(before, first) + max_pieces, side="right")
        return index + 1, tf.minimum(end, stops), firsts.write(index, first)

    index, first, firsts = next_rows(tf.constant(0), text_splits[:-1], tf.TensorArray(
        tf.int32, size=1, dynamic_size=True, element_shape=[None]))
    _, _, firsts = tf.while_loop(lambda _, first, __: tf.reduce_any(first < stops), next_rows,
                                 [index, first, firsts], parallel_iterations=1)

    # The first word of each of the R rows that aren't empty, text after text, and its pieces.
    first_words = tf.transpose(firsts.stack())
    first_words = tf.boolean_mask(first_words, first_words < stops[:, tf.newaxis])  # [R].
    begins = tf.gather(before, first_words)
    pieces = tf.RaggedTensor.from_row_starts(words.pieces.flat_values, begins, validate=False)

    # A word's row is the last one that begins at it or before; its column counts [CLS].
    row = tf.searchsorted(first_words, tf.range(tf.size(sizes)), side="right") - 1
    column = 1 + before[:-1] - tf.gather(begins, row)
    return WordRows(encoder.rows([pieces]), tf.stack([row, column], axis=1), sizes)


def per_text(words: Words, values: tf.Tensor, fill: tf.Tensor) -> tf.Tensor:
    """Returns values [W] of words as [B, most words of a text], padded with `fill`."""
    return words.texts.with_flat_values(values).to_tensor(fill)

"""Texts as rows of token ids, [CLS] text [SEP] and [CLS] text [SEP] text [SEP], by TensorFlow ops.

Training, prediction and exported graphs share this code.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.core.errors import UserError
from electra_tf.text.normalization import TextSettings
from electra_tf.text.tokenizer import Tokenizer

CHUNK = 20_000  # Texts that one call tokenizes.
_PAD, _CLS, _SEP, _FIRST_PIECE = range(4)
"""Indices of the special tokens and of the first piece in the list from which rows are gathered."""
Keep = Callable[[tf.RaggedTensor, tf.Tensor], tf.RaggedTensor]
"""Maps rows of pieces and numbers of those that stay, int32 [B], to the pieces that stay."""


class Tokens(NamedTuple):
    """A batch as encoders take it."""

    ids: tf.Tensor  # int32 [B, L].
    segment_ids: tf.Tensor  # int32 [B, L].
    padding_mask: tf.Tensor  # bool [B, L].


class TokenRow(NamedTuple):
    """One row without padding."""

    ids: np.ndarray  # int32 [n].
    segment_ids: np.ndarray  # int32 [n].


class Windows(NamedTuple):
    """The parts of the contexts of B questions in W rows."""

    example: tf.Tensor  # int32 [W]: index of the question.
    first: tf.Tensor  # int32 [W]: the part's first piece, among those of its context.
    sizes: tf.Tensor  # int32 [W]: number of its pieces.
    position: tf.Tensor  # int32 [W]: column of its first piece in the row.
    is_best: tf.Tensor
    """bool [sum of sizes]: True in the question's window with the most context around the piece.
    The side with less context counts, then the longer window, then the earlier one."""


class RowEncoder:
    """A converter of texts to rows of at most `max_length` tokens; pairs need two segments."""

    def __init__(self, text: TextSettings, max_length: int, num_segments: int = 2):
        self.tokenizer = Tokenizer(text)
        self.vocabulary = text.vocabulary
        self.max_length, self._num_segments = max_length, num_segments

    def encode(self, *columns: tf.Tensor) -> Tokens:
        """Returns rows of one or two columns of texts, string [B], cut as `shortened` does."""
        return self.encode_counted(*columns)[0]

    def encode_counted(self, *columns: tf.Tensor, keep: Keep | None = None) -> tuple[
            Tokens, tf.Tensor]:
        """Returns what `encode` does, and the numbers of tokens before the cut, int32 [B].

        `keep` cuts each text to its new length; by default its first tokens stay.
        """
        columns, lengths, limits, total = self._tokenize(columns)
        return self.rows([(keep or first_values)(pieces, limit)
                          for pieces, limit in zip(columns, limits, strict=True)]), total

    def _tokenize(self, columns: Sequence[tf.Tensor]) -> tuple[
            list[tf.RaggedTensor], list[tf.Tensor], list[tf.Tensor], tf.Tensor]:
        """Returns each column's pieces [B, (pieces)], their numbers before and after the cut, and
        the rows' numbers of tokens before it; all are int32, numbers are [B].
        """
        pieces = [self.tokenizer.tokenize(column) for column in columns]
        lengths = [tf.cast(column.row_lengths(), tf.int32) for column in pieces]
        num_special = 1 + len(columns)
        return (pieces, lengths, shortened(lengths, self.max_length - num_special),
                tf.add_n(lengths) + num_special)

    def encode_in_windows(self, *columns: tf.Tensor, stride: int) -> tuple[
            Tokens, tf.Tensor, tf.Tensor]:
        """Returns sliding windows over B texts or pairs as W rows; the last window may be shorter.

        The first window is the row of `encode`; each next one begins `stride` pieces later, at most
        its own size. Of a pair, windows slide over the text with more pieces, the second of equal
        ones; the other text stays. Also returns each window's example, int32 [W], ascending, and
        the numbers of tokens before the cut, int32 [B].
        """
        columns, lengths, limits, total = self._tokenize(columns)

        # Which column slides, bool [B] each, and its number of pieces and room in a row.
        is_last = lengths[-1] >= lengths[0]  # Always for single texts.
        sliding = [~is_last, is_last][-len(columns):]
        length, capacity = (tf.add_n([
            tf.where(slides, column, 0) for slides, column in zip(sliding, values, strict=True)])
            for values in (lengths, limits))
        example, first, sizes = window_spans(length, tf.maximum(capacity, 1), stride)

        # Each window's pieces, int32 [W, (pieces)]: its part of the sliding column, and the first
        # pieces of the other one.
        windows = []
        for pieces, limit, is_sliding in zip(columns, limits, sliding, strict=True):
            slides = tf.gather(is_sliding, example)
            begin = tf.gather(tf.cast(pieces.row_starts(), tf.int32), example)
            begin += tf.where(slides, first, 0)
            windows.append(tf.gather(pieces.flat_values, tf.ragged.range(
                begin, begin + tf.where(slides, sizes, tf.gather(limit, example)))))
        return self.rows(windows), example, total

    def rows(self, parts: Sequence[tf.RaggedTensor]) -> Tokens:
        """Returns rows of one or two parts, int32 [B, (n)], with [CLS] before and [SEP] after."""
        if len(parts) > self._num_segments:
            raise UserError("the encoder has type_vocab_size=1 and reads no pairs of texts or "
                            "questions about contexts; choose one with type_vocab_size=2, or join "
                            "the texts of a pair in one column.")
        # All ids end to end, after the special ones, in the order of the indices above.
        vocabulary = self.vocabulary
        ids = tf.concat([[vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id],
                         *(part.flat_values for part in parts)], axis=0)

        # The rows' lengths, int32 [B], and their columns, [L], L the largest length.
        lengths = [tf.cast(part.row_lengths(), tf.int32) for part in parts]
        totals = tf.add_n(lengths) + (1 + len(parts))
        # Without rows there is one column, because task heads read the first.
        columns = tf.range(tf.reduce_max(tf.concat([totals, [1]], axis=0)))

        # Index in `ids` of every token, [B, L]; int32 throughout, which TensorFlow moves fastest.
        # A part's tokens are in columns [begin, end), its [SEP] follows.
        indices = tf.tile(tf.where(columns == 0, _CLS, _PAD)[tf.newaxis], [tf.size(totals), 1])
        begin, part_start = tf.ones_like(totals), _FIRST_PIECE
        for part, length in zip(parts, lengths, strict=True):
            end = begin + length
            inside = (columns >= begin[:, tf.newaxis]) & (columns < end[:, tf.newaxis])
            first = part_start + tf.cast(part.row_starts(), tf.int32) - begin
            indices = tf.where(inside, first[:, tf.newaxis] + columns, indices)
            indices = tf.where(columns == end[:, tf.newaxis], _SEP, indices)
            begin, part_start = end + 1, part_start + tf.size(part.flat_values)
        padding_mask = columns < totals[:, tf.newaxis]
        # The second segment begins after [CLS], the first part and its [SEP].
        second = padding_mask & (columns > 1 + lengths[0][:, tf.newaxis])
        return Tokens(tf.gather(ids, indices), tf.cast(second, tf.int32), padding_mask)


def first_values(rows: tf.RaggedTensor, limits: tf.Tensor) -> tf.RaggedTensor:
    """Returns the first `limits` values, int32 [B], of every row, which must not be shorter."""
    starts = tf.cast(rows.row_starts(), tf.int32)
    return tf.gather(rows.flat_values, tf.ragged.range(starts, starts + limits))


def first_and_last_values(rows: tf.RaggedTensor, limits: tf.Tensor) -> tf.RaggedTensor:
    """Returns `limits` values of every row: a quarter, rounded up, of its first, then its last.

    Of 510 tokens these are 128 and 382 (Sun et al., 2019, section 5.3.1). Arguments are those of
    `first_values`.
    """
    starts, ends = (tf.cast(values, tf.int32) for values in (rows.row_starts(), rows.row_limits()))
    head = -(-limits // 4)  # The first pieces that stay.
    return tf.gather(rows.flat_values, tf.concat([
        tf.ragged.range(starts, starts + head),
        tf.ragged.range(ends - (limits - head), ends)], axis=1))


def shortened(lengths: Sequence[tf.Tensor], limit: int) -> list[tf.Tensor]:
    """Returns the lengths after cutting the longer text, the second of equal ones, until both fit.

    Lengths, given and returned, are int32 [B] of one or two texts; their sum is at most `limit`.

    Example:
        >>> [int(kept[0]) for kept in shortened([tf.constant([10]), tf.constant([4])], 7)]
        [4, 3]
    """
    if len(lengths) == 1:
        return [tf.minimum(lengths[0], limit)]
    first, second = lengths
    half = limit // 2
    # The first is cut to what the second leaves of the limit, or to a half, if it is longer.
    return [tf.minimum(first, tf.maximum(limit - second, limit - half)),
            tf.minimum(second, tf.maximum(limit - first, half))]


def encode_windows(encoder: RowEncoder, queries: tf.RaggedTensor, contexts: tf.RaggedTensor,
                   context_of: tf.Tensor, *, stride: int) -> tuple[Tokens, Windows]:
    """Returns sliding windows over contexts as rows, [CLS] question [SEP] part of context [SEP].

    Queries are int32 [B, (pieces)], contexts int32 [C, (pieces)], and `context_of`, int32 [B], is
    the index of each query's context. Windows of one question begin `stride` pieces apart
    (BERT, section 4.2).
    """
    # Spans of windows within their contexts, and their pieces, int32 [W, (pieces)].
    query_sizes = tf.cast(queries.row_lengths(), tf.int32)
    lengths = tf.gather(tf.cast(contexts.row_lengths(), tf.int32), context_of)
    starts = tf.gather(tf.cast(contexts.row_starts(), tf.int32), context_of)
    capacity = encoder.max_length - 3 - query_sizes
    example, first, sizes = window_spans(lengths, capacity, stride)
    begin = tf.gather(starts, example) + first
    parts = tf.gather(contexts.flat_values, tf.ragged.range(begin, begin + sizes))

    # For each piece of each window: the window, the column in it, and the piece's index among the
    # pieces of all questions' contexts.
    columns = tf.ragged.range(sizes)
    window = tf.cast(columns.value_rowids(), tf.int32)
    column, size = columns.flat_values, tf.gather(sizes, window)
    before = tf.gather(tf.cumsum(lengths, exclusive=True), example)
    piece = tf.gather(before + first, window) + column

    # Each piece's best window has the most context on the side with less. BERT adds 0.01 times the
    # size; whole hundredths compare exactly.
    score = 100 * tf.minimum(column, size - 1 - column) + size
    num_pieces = tf.reduce_sum(lengths)
    best_score = tf.math.unsorted_segment_max(score, piece, num_pieces)
    candidates = tf.where(score == tf.gather(best_score, piece), window, tf.size(sizes))
    best_window = tf.math.unsorted_segment_min(candidates, piece, num_pieces)
    return encoder.rows([tf.gather(queries, example), parts]), Windows(
        example, first, sizes, position=2 + tf.gather(query_sizes, example),
        is_best=candidates == tf.gather(best_window, piece))


def window_spans(lengths: tf.Tensor, capacity: tf.Tensor,
                 stride: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns text, first piece and number of pieces of every window, int32 [W] each.

    `lengths` and `capacity`, the most pieces of a window, are int32 [B]. Windows overlap or touch.
    """
    # One window, and another one for every step that the rest of the text needs.
    step = tf.minimum(stride, capacity)
    windows = tf.ragged.range(1 + -(-tf.maximum(lengths - capacity, 0) // step))
    example = tf.cast(windows.value_rowids(), tf.int32)
    first = windows.flat_values * tf.gather(step, example)
    return example, first, tf.minimum(
        tf.gather(capacity, example), tf.gather(lengths, example) - first)


def token_rows(tokens: Tokens) -> list[TokenRow]:
    """Returns the rows of a batch with at least one row."""
    ids, segment_ids, padding_mask = (values.numpy() for values in tokens)
    ends = np.cumsum(padding_mask.sum(axis=1))[:-1]
    return [TokenRow(*row) for row in zip(
        np.split(ids[padding_mask], ends), np.split(segment_ids[padding_mask], ends), strict=True)]


def encode_texts(texts: Sequence[tuple[str, ...]], encoder: RowEncoder,
                 keep: Keep | None = None) -> tuple[list[TokenRow], np.ndarray]:
    """Returns rows of texts or pairs and uncut lengths, int32 [rows], as `encode_counted`."""
    rows, lengths = [], [np.zeros(0, np.int32)]
    for begin in range(0, len(texts), CHUNK):
        columns = zip(*texts[begin:begin + CHUNK], strict=True)
        tokens, counts = encoder.encode_counted(*map(tf.constant, columns), keep=keep)
        rows += token_rows(tokens)
        lengths.append(counts.numpy())
    return rows, np.concatenate(lengths)


def cut_notes(lengths: Iterable[int], limit: int, setting: str, what: str = "rows",
              outcome: str = "were cut") -> list[str]:
    """Returns a note if texts of `lengths` tokens were cut to `limit`, the value of `setting`.

    >>> cut_notes([5, 302], 128, "--max_seq_length")
    ['1 of 2 rows are longer than --max_seq_length=128 tokens and were cut (longest: 302)']
    """
    lengths = np.array([*lengths])
    cut = int((lengths > limit).sum())
    return [f"{cut:,} of {len(lengths):,} {what} are longer than {setting}={limit} tokens and "
            f"{outcome} (longest: {lengths.max():,})"] if cut else []

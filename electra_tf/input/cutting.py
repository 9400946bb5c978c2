"""Rows of L tokens out of longer examples: 128 tokens for most of a run from records of 512.

An example [CLS] A [SEP] B [SEP] of the build's length has room for R = (built - 2) // (L - 2)
rows [CLS] ... [SEP], which hold its text in order. What is left over, (built - 2) % (L - 2) tokens
(6 of 510, for 128 from 512), stays out: at the example's beginning and end, another part in
another epoch.
"""

import dataclasses

import tensorflow as tf

from electra_tf.records.example import Batch

SHORTEST_ROW = 8
"""Tokens."""
_SPECIAL = 2
"""[CLS] and the last [SEP]."""


@dataclasses.dataclass(frozen=True)
class Cutting:
    """How many rows an example gives, and where they begin."""

    built: int
    """Tokens of an example as stored."""
    length: int
    """L, tokens of a row, at most `built`."""

    @property
    def rows(self) -> int:
        """R, rows of an example; 1 if nothing is cut."""
        return (self.built - _SPECIAL) // (self.length - _SPECIAL)

    @property
    def left_over(self) -> int:
        """Tokens of an example that are in none of its rows."""
        return (self.built - _SPECIAL) % (self.length - _SPECIAL)

    def first_tokens(self, rows: tf.Tensor, draw: tf.Tensor) -> tf.Tensor:
        """Returns the position, int64 [n], of each row's first token after [CLS].

        Args:
            rows: int64 [n], number of the row within its example.
            draw: int64 [], 0 or more; decides how much of the rest is before the first row.
        """
        return 1 + draw % (self.left_over + 1) + rows * (self.length - _SPECIAL)

    def __call__(self, batch: Batch, first: tf.Tensor, pad_id: int) -> Batch:
        """Returns rows [B, L] of examples [B, built]; the examples themselves if that is L.

        A row that holds parts of both segments has two, any other has one. A row past the end of
        a short example is empty: nothing of it is valid.

        Args:
            batch: examples.
            first: int64 [B], by `first_tokens`.
            pad_id: fills up.
        """
        if self.length == self.built:
            return batch
        lengths = tf.reduce_sum(tf.cast(batch.valid, tf.int32), axis=1, keepdims=True)
        first = tf.cast(first, tf.int32)[:, tf.newaxis]
        # Tokens of text in the row; the example's last [SEP] isn't one.
        held = tf.clip_by_value(lengths - 1 - first, 0, self.length - _SPECIAL)
        place = tf.range(self.length)[tf.newaxis]
        source = tf.where(place <= held, first + place - 1, lengths - 1)
        source = tf.where(place == 0, 0, tf.clip_by_value(source, 0, self.built - 1))
        valid = (place < held + _SPECIAL) & (held > 0)
        ids = tf.where(valid, tf.gather(batch.ids, source, batch_dims=1), pad_id)
        # The closing [SEP] is of the segment before it; a row within B counts as a first segment.
        of_text = tf.clip_by_value(first - 1 + tf.minimum(place, held), 0, self.built - 1)
        segments = tf.gather(batch.segment_ids, of_text, batch_dims=1)
        segments -= tf.gather(batch.segment_ids, tf.minimum(first, self.built - 1), batch_dims=1)
        segments = tf.where(valid & (place > 0), segments, 0)
        return Batch(ids=ids, valid=valid, segment_ids=segments)

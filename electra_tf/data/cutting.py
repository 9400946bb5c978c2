"""Rows of L tokens out of longer examples: 128 tokens for most of a run from records of 512."""

import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.row_places import SPECIAL, RowPlaces

SHORTEST_ROW = 8
"""Tokens."""


class Cutting(RowPlaces):
    """Makes rows of examples; `row_places` says where they begin."""

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
        held = tf.clip_by_value(lengths - 1 - first, 0, self.length - SPECIAL)
        place = tf.range(self.length)[tf.newaxis]
        source = tf.where(place <= held, first + place - 1, lengths - 1)
        source = tf.where(place == 0, 0, tf.clip_by_value(source, 0, self.built - 1))
        valid = (place < held + SPECIAL) & (held > 0)
        ids = tf.where(valid, tf.gather(batch.ids, source, batch_dims=1), pad_id)
        # The closing [SEP] is of the segment before it; a row within B counts as a first segment.
        of_text = tf.clip_by_value(first - 1 + tf.minimum(place, held), 0, self.built - 1)
        segments = tf.gather(batch.segment_ids, of_text, batch_dims=1)
        segments -= tf.gather(batch.segment_ids, tf.minimum(first, self.built - 1), batch_dims=1)
        segments = tf.where(valid & (place > 0), segments, 0)
        return Batch(ids=ids, valid=valid, segment_ids=segments)

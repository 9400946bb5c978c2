"""Rows of fewer tokens than the records were built with."""

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.order import RowPlaces
from electra_tf.data.pipeline import cut

PAD, CLS, SEP = 0, 2, 3


def example(first, second, length):
    """A batch of one example, [CLS] first [SEP] second [SEP]."""
    ids = [CLS, *first, SEP, *second, *([SEP] if second else [])]
    segments = [0] * (len(first) + 2) + [1] * (len(ids) - len(first) - 2)
    fill = [0] * (length - len(ids))
    return Batch(tf.constant([ids + fill]), tf.constant([[True] * len(ids) + [False] * len(fill)]),
                 tf.constant([segments + fill]))


def rows_of(places, batch, draw=0):
    """Ids and segments of every row of the only example, without padding."""
    first = places.first_tokens(tf.range(places.rows, dtype=tf.int64), tf.constant(draw, tf.int64))
    rows = cut(Batch(*(tf.repeat(part, places.rows, axis=0) for part in batch)), first, places, PAD)
    assert (np.where(rows.valid, PAD, rows.ids) == PAD).all()
    assert all(part.shape == [places.rows, places.length] for part in rows)
    return [([int(one) for one in ids[valid]], [int(one) for one in segments[valid]])
            for ids, valid, segments in zip(*(part.numpy() for part in rows), strict=True)]


def test_text_comes_in_order_between_cls_and_sep():
    # 14 tokens between [CLS] and the last [SEP], 6 in a row: two rows, two tokens left over.
    places, batch = RowPlaces(16, 8), example(range(10, 18), range(20, 25), 16)
    assert rows_of(places, batch) == [
        ([CLS, 10, 11, 12, 13, 14, 15, SEP], [0] * 8),
        ([CLS, 16, 17, SEP, 20, 21, 22, SEP], [0, 0, 0, 0, 1, 1, 1, 1])]
    assert rows_of(places, batch, draw=2) == [
        ([CLS, 12, 13, 14, 15, 16, 17, SEP], [0] * 8),
        ([CLS, SEP, 20, 21, 22, 23, 24, SEP], [0, 0, 1, 1, 1, 1, 1, 1])]


def test_another_draw_leaves_out_others_and_every_token_is_read_by_some():
    places, batch = RowPlaces(16, 8), example(range(10, 24), [], 16)
    seen = [{token for ids, _ in rows_of(places, batch, draw) for token in ids[1:-1]}
            for draw in range(3)]
    assert [len(tokens) for tokens in seen] == [12, 12, 12]
    assert seen[0] | seen[2] == set(range(10, 24)) and seen[1] == set(range(11, 23))


def test_a_row_within_the_second_segment_is_a_first_segment():
    ids, segments = rows_of(RowPlaces(16, 8), example([10], range(20, 32), 16), draw=1)[1]
    assert ids == [CLS, *range(25, 31), SEP] and segments == [0] * 8


def test_short_examples_give_short_and_empty_rows():
    assert rows_of(RowPlaces(32, 12), example([10, 11], [20] * 11, 32)) == [
        ([CLS, 10, 11, SEP, *[20] * 7, SEP], [0, 0, 0, 0, *[1] * 8]),
        ([CLS, *[20] * 4, SEP], [0] * 6), ([], [])]


def test_the_records_own_length_is_left_alone():
    batch = example(range(10, 18), range(20, 25), 16)
    assert cut(batch, tf.constant([1], tf.int64), RowPlaces(16, 16), PAD) is batch

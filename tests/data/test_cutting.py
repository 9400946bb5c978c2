"""Rows of fewer tokens than the records were built with."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.cutting import Cutting
from electra_tf.data.example import Batch

PAD, CLS, SEP = 0, 2, 3


def example(first, second, length):
    """A batch of one example, [CLS] first [SEP] second [SEP]."""
    ids = [CLS, *first, SEP, *second, *([SEP] if second else [])]
    segments = [0] * (len(first) + 2) + [1] * (len(ids) - len(first) - 2)
    fill = [0] * (length - len(ids))
    return Batch(tf.constant([ids + fill]), tf.constant([[True] * len(ids) + [False] * len(fill)]),
                 tf.constant([segments + fill]))


def rows_of(cutting, batch, draw=0):
    """Ids (None on padding) and segments of every row of the only example."""
    numbers = tf.range(cutting.rows, dtype=tf.int64)
    repeated = Batch(*(tf.repeat(part, cutting.rows, axis=0) for part in batch))
    cut = cutting(repeated, cutting.first_tokens(numbers, tf.constant(draw, tf.int64)), PAD)
    assert (np.where(cut.valid, PAD, cut.ids) == PAD).all()
    return [([int(one) for one in ids[valid]], [int(one) for one in segments[valid]])
            for ids, valid, segments in zip(*(part.numpy() for part in cut), strict=True)]


def test_the_number_of_rows_and_what_they_leave_out():
    assert [(Cutting(512, length).rows, Cutting(512, length).left_over)
            for length in (512, 256, 128, 64)] == [(1, 0), (2, 2), (4, 6), (8, 14)]


def test_text_comes_in_order_between_cls_and_sep():
    # 14 tokens between [CLS] and the last [SEP], 6 in a row: two rows, two tokens left over.
    cutting, batch = Cutting(16, 8), example(range(10, 18), range(20, 25), 16)
    assert rows_of(cutting, batch) == [
        ([CLS, 10, 11, 12, 13, 14, 15, SEP], [0] * 8),
        ([CLS, 16, 17, SEP, 20, 21, 22, SEP], [0, 0, 0, 0, 1, 1, 1, 1])]
    assert rows_of(cutting, batch, draw=2) == [
        ([CLS, 12, 13, 14, 15, 16, 17, SEP], [0] * 8),
        ([CLS, SEP, 20, 21, 22, 23, 24, SEP], [0, 0, 1, 1, 1, 1, 1, 1])]


def test_another_draw_leaves_out_others_and_every_token_is_read_by_some():
    cutting, batch = Cutting(16, 8), example(range(10, 24), [], 16)
    seen = [{token for ids, _ in rows_of(cutting, batch, draw) for token in ids[1:-1]}
            for draw in range(3)]
    assert [len(tokens) for tokens in seen] == [12, 12, 12]
    assert seen[0] | seen[2] == set(range(10, 24)) and seen[1] == set(range(11, 23))


def test_a_row_within_the_second_segment_is_a_first_segment():
    ids, segments = rows_of(Cutting(16, 8), example([10], range(20, 32), 16), draw=1)[1]
    assert ids == [CLS, *range(25, 31), SEP] and segments == [0] * 8


def test_short_examples_give_short_and_empty_rows():
    assert rows_of(Cutting(32, 12), example([10, 11], [20] * 11, 32)) == [
        ([CLS, 10, 11, SEP, *[20] * 7, SEP], [0, 0, 0, 0, *[1] * 8]),
        ([CLS, *[20] * 4, SEP], [0] * 6), ([], [])]


def test_the_records_own_length_is_left_alone():
    batch = example(range(10, 18), range(20, 25), 16)
    assert Cutting(16, 16)(batch, tf.constant([1], tf.int64), PAD) is batch


@pytest.mark.parametrize("length", [8, 12, 15])
def test_shapes_are_static(length):
    batch = Batch(tf.zeros([3, 16], tf.int32), tf.ones([3, 16], tf.bool),
                  tf.zeros([3, 16], tf.int32))
    for part in Cutting(16, length)(batch, tf.constant([1, 1, 1], tf.int64), PAD):
        assert part.shape == [3, length]

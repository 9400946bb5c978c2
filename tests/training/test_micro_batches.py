"""Which rows of a batch go together."""

import pytest
import tensorflow as tf

from electra_tf.training.micro_batches import concat_parts, sum_parts

ROWS = tf.range(24, dtype=tf.int64)


@pytest.mark.parametrize(("parts", "rounds", "expected"), [
    (1, 1, [list(range(24))]),
    (2, 1, [list(range(12)), list(range(12, 24))]),
    (1, 3, [[0, 3, 6, 9, 12, 15, 18, 21], [1, 4, 7, 10, 13, 16, 19, 22],
            [2, 5, 8, 11, 14, 17, 20, 23]]),
    (2, 3, [[0, 3, 6, 9], [12, 15, 18, 21], [1, 4, 7, 10], [13, 16, 19, 22], [2, 5, 8, 11],
            [14, 17, 20, 23]]),
])
def test_a_part_has_consecutive_rows_and_a_round_every_nth_of_them(parts, rounds, expected):
    def positions(rows, first_row):
        return tf.reduce_sum(tf.one_hot(rows, 24, dtype=tf.int64), axis=0) * first_row

    seen = sum_parts(positions, ROWS, rounds=rounds, parts=parts).numpy().tolist()
    assert seen == [min(group) for row in range(24) for group in expected if row in group]


def test_concatenated_parts_keep_the_order_of_rows():
    rows = concat_parts(lambda rows, first_row: rows + 0 * first_row, ROWS, 4)
    assert rows.numpy().tolist() == list(range(24))

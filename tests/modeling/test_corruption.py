import numpy as np
import tensorflow as tf

from electra_tf.modeling.corruption import label_replaced
from electra_tf.modeling.masking import gather_tokens, gather_vectors, write_tokens
from tests.parity import golden_files


def test_writing_equals_the_reference_also_where_positions_collide():
    golden = golden_files.load("masking_scatter")
    positions = tf.constant(golden["positions"])
    written = write_tokens(tf.constant(golden["int_sequence"]), positions,
                           tf.constant(golden["int_updates"]), positions > 0)
    np.testing.assert_array_equal(written, golden["int_result"])


def test_gathering_equals_the_reference():
    golden = golden_files.load("masking_scatter")
    positions = tf.constant(golden["positions"])
    np.testing.assert_array_equal(
        gather_tokens(tf.constant(golden["int_sequence"]), positions), golden["int_gather"])
    np.testing.assert_array_equal(
        gather_vectors(tf.constant(golden["float_sequence"]), positions),
        golden["float_gather"].reshape(-1, 3))


def test_slots_that_arent_valid_write_nothing():
    ids = tf.constant([[1, 2, 3]])
    written = write_tokens(ids, tf.constant([[0, 2]]), tf.constant([[7, 8]]),
                           tf.constant([[False, True]]))
    assert written.numpy().tolist() == [[1, 2, 8]]


def test_a_sample_equal_to_the_original_isnt_replaced_and_padding_never_is():
    labels = label_replaced(tf.constant([[5, 6, 7, 0]]), tf.constant([[5, 9, 7, 9]]),
                            tf.constant([[True, True, True, False]]))
    assert labels.numpy().tolist() == [[False, True, False, False]]

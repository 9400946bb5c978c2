"""An example comes back from its bytes as it was, padded and masked."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.pipeline import parse_examples
from electra_tf.data.records import Records, stored_ids
from tests.support.tiny_records import serialize_example

PAD = 9


def parse(serialized, max_seq_length=6, token_bytes=2):
    return parse_examples(serialized, Records(
        data_dir=pathlib.Path(), max_seq_length=max_seq_length, packing="reference", shards={},
        token_bytes=token_bytes, vocab_size=2**31 - 1, fingerprint=""), PAD)


@pytest.mark.parametrize("token_bytes, largest", [(2, 65535), (4, 2**31 - 2)])
def test_examples_come_back_padded_with_mask_and_segments(token_bytes, largest):
    batch = parse(tf.constant([serialize_example(*item, token_bytes) for item in (
        ([2, largest, 3, 8, 3], 3), ([2, 0, 3], 3), ([2, 7, 7, 7, 7, 3], 2))]),
                  token_bytes=token_bytes)
    np.testing.assert_array_equal(batch.ids, [
        [2, largest, 3, 8, 3, PAD], [2, 0, 3, PAD, PAD, PAD], [2, 7, 7, 7, 7, 3]])
    np.testing.assert_array_equal(batch.padding_mask, np.array([
        [1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]], bool))
    np.testing.assert_array_equal(batch.segment_ids, [
        [0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]])
    assert (batch.ids.dtype, batch.padding_mask.dtype, batch.segment_ids.dtype) == (
        tf.int32, tf.bool, tf.int32)


def test_shapes_are_static_in_an_input_pipeline():
    serialized = [serialize_example([2, 5, 3], 3, 2)] * 4
    dataset = tf.data.Dataset.from_tensor_slices(serialized).batch(2, drop_remainder=True)
    dataset = dataset.map(parse)
    assert [spec.shape.as_list() for spec in dataset.element_spec] == [[2, 6]] * 3


@pytest.mark.parametrize("token_bytes", [2, 4])
def test_the_bytes_are_those_of_protobuf(token_bytes):
    """Lengths at which the numbers of bytes before the ids take one byte, two, three."""
    for length, first in ((1, 1), (3, 2), (40, 40), (64, 63), (127, 5), (128, 127), (128, 128),
                          (8200, 16), (65536, 300), (65536, 65536)):
        ids = np.arange(length) % 60_000
        message = tf.train.Example()
        message.features.feature["ids"].bytes_list.value.append(
            ids.astype({2: "<u2", 4: "<i4"}[token_bytes]).tobytes())
        message.features.feature["first_segment_length"].int64_list.value.append(first)
        serialized = serialize_example(ids, first, token_bytes)
        assert serialized == message.SerializeToString(deterministic=True)
        stored, boundary = stored_ids(serialized, token_bytes)
        assert (stored.tolist(), boundary) == (ids.tolist(), first)


@pytest.mark.parametrize("damage", [
    lambda example: example[:-1], lambda example: example[:7], lambda example: b"",
    lambda example: b"\xff" * 30, lambda example: example.replace(b"ids", b"odd")])
def test_other_bytes_are_refused(damage):
    with pytest.raises(ValueError, match="are not an example of 2-byte ids"):
        stored_ids(damage(serialize_example(range(5), 3, 2)), 2)


@pytest.mark.parametrize(("length", "width", "words"), [
    (2, 2, "longer than max_seq_length=2"), (6, 4, "4-byte ids")])
def test_a_long_example_or_ids_of_another_width_are_an_error(length, width, words):
    serialized = tf.constant([serialize_example([2, 5, 3], 3, 2)])
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        parse(serialized, length, width)


@pytest.mark.parametrize("first", [0, 4, 2**32 + 3])
def test_both_readers_refuse_a_first_segment_outside_the_example(first):
    example = tf.train.Example()
    example.features.feature["ids"].bytes_list.value.append(np.array([2, 5, 3], "<u2").tobytes())
    example.features.feature["first_segment_length"].int64_list.value.append(first)
    serialized = example.SerializeToString(deterministic=True)
    with pytest.raises(ValueError, match=r"first_segment_length must be in \[1, 3\]"):
        stored_ids(serialized, 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="first_segment_length is not within"):
        parse(tf.constant([serialized]))

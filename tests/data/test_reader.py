"""Without TensorFlow the same rows come in the same order, or an error that names the file."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data import pipeline, reader
from electra_tf.data.manifest import load_records
from electra_tf.platform.errors import UserError
from tests import tiny_records

BATCH, BUFFER, SEED = 8, 40, 3


def read(data_dir, first, last):
    return list(reader.training_batches(
        load_records(data_dir), pad_id=0, seed=SEED, buffer_examples=BUFFER, batch_size=BATCH,
        first_step=first, last_step=last))


def test_batches_are_those_of_the_pipeline(records):
    for first, last in ((0, 30), (17, 20)):
        expected = list(pipeline.training_batches(
            load_records(records), pad_id=0, seed=SEED, buffer_examples=BUFFER,
            global_batch_size=BATCH, first_step=first, last_step=last,
            context=tf.distribute.InputContext()))
        found = read(records, first, last)
        assert len(found) == len(expected) == last - first
        for ours, theirs in zip(found, expected, strict=True):
            for part, value in theirs._asdict().items():
                assert getattr(ours, part).dtype == value.numpy().dtype
                np.testing.assert_array_equal(getattr(ours, part), value, err_msg=part)


def test_examples_of_a_shard_come_in_their_order(records, monkeypatch):
    monkeypatch.setattr(reader, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    made = load_records(records)
    shard = made.shards["train"][0]
    expected = pipeline.parse_examples(
        tf.constant([one.numpy() for one in tf.data.TFRecordDataset(
            str(records / shard.name))]), made, 9)
    for start, stop in ((0, None), (3, 18), (20, 21)):
        parts = list(reader.examples(made, shard, pad_id=9, start=start, stop=stop))
        assert max(len(part.ids) for part in parts) <= 7
        for found, wanted in zip(zip(*parts, strict=True), expected, strict=True):
            np.testing.assert_array_equal(np.concatenate(found), wanted[start:stop])


def bytes_changed(place):
    def change(content):
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1:]
    return change


@pytest.mark.parametrize(("change", "words"), [
    (lambda content: b"", "has 0 examples instead of"),
    (lambda content: content[:5], "a record is cut off"),
    (lambda content: content[:-3], "a record is cut off"),
    (bytes_changed(60), "cut off or changed"), (bytes_changed(-9), "cut off or changed"),
    (bytes_changed(7), "cut off or changed"), (bytes_changed(0), "cut off or changed")])
def test_a_damaged_shard_is_named(records, tmp_path, change, words):
    copy = shutil.copytree(records, tmp_path / "copy")
    for shard in copy.glob("train-*"):
        shard.write_bytes(change(shard.read_bytes()))
    with pytest.raises(UserError, match=rf"train-0000\d.tfrecord isn't what.*{words}"):
        read(copy, 0, 30)

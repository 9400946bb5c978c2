"""All examples of a shard are read in order, or an error names the file and the record."""

import itertools
import shutil

import pytest
import tensorflow as tf

from electra_tf.data import shards
from electra_tf.data.manifest import load_records
from electra_tf.platform.errors import UserError
from tests.support import tiny_records


def test_examples_of_a_shard_come_in_their_order(records, monkeypatch):
    monkeypatch.setattr(shards, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    made = load_records(records)
    shard = made.shards["train"][0]
    expected = list(tf.data.TFRecordDataset(str(records / shard.name)).as_numpy_iterator())
    for start, stop in ((0, None), (3, 18), (20, 21)):
        batches = list(shards.serialized_examples(made, shard, start=start, stop=stop))
        assert max(map(len, batches)) <= 7
        assert list(itertools.chain(*batches)) == expected[start:stop]


def bytes_changed(place):
    def change(content):
        return content[:place] + bytes([content[place] ^ 1]) + content[place + 1:]
    return change


@pytest.mark.parametrize(("change", "words"), [
    (lambda content: b"", "has 0 examples instead of"),
    (lambda content: content[:5], "has 0 examples instead of"),
    (lambda content: content[:-3], "a record is cut off"),
    (bytes_changed(60), "cut off or changed"), (bytes_changed(-9), "cut off or changed"),
    (bytes_changed(7), "cut off or changed"), (bytes_changed(0), "cut off or changed")])
def test_a_damaged_shard_is_named(records, tmp_path, change, words):
    copy = shutil.copytree(records, tmp_path / "copy")
    for shard in copy.glob("train-*"):
        shard.write_bytes(change(shard.read_bytes()))
    with pytest.raises(UserError, match=rf"train-0000\d.tfrecord isn't what.*{words}"):
        shards.require_readable(load_records(copy))

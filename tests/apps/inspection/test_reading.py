"""What is read, against every example read by itself; damage is named."""

import pytest
import tensorflow as tf

from electra_tf.apps.inspection import reading
from electra_tf.data import manifest
from electra_tf.data.example import serialize_example
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from tests import numbered_records, tiny_records


def read(records):
    return list(records.rows("train"))


def test_every_example_is_where_its_number_says(tmp_path):
    numbered_records.write(tmp_path / "records", [30, 6, 50], held_out=4)
    records = reading.open_records(storage.path(tmp_path / "records"))
    numbers = [number for batch in read(records) for _, number, _ in
               numbered_records.said(batch.ids)]
    assert numbers == list(range(86))
    for number in (0, 29, 30, 36, 85):
        example = records.example(records.place("train", number))
        assert numbered_records.said(example.ids)[0][1] == number


@pytest.mark.parametrize(("damage", "words"), [
    (lambda path: path.unlink(), "cannot be read"),
    (lambda path: path.write_bytes(path.read_bytes()[:-9]), "bytes instead of"),
    (lambda path: path.write_bytes(b"x" * path.stat().st_size), "cut off or changed"),
    (lambda path: path.write_bytes(path.read_bytes()[:-50] + b"x" * 50), "cut off or changed")])
def test_a_damaged_shard_is_one_line(data_dir, damage, words):
    damage(data_dir / "train-00001.tfrecord")
    with pytest.raises(UserError, match=f"train-00001.tfrecord .*{words}.*--overwrite") as caught:
        read(reading.open_records(data_dir))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("serialized", "words"), [
    (b"nothing", "7 bytes are not an example"),
    (serialize_example([2, *[5] * 40, 3], 42, 2), "has 42 tokens; max_seq_length is 32"),
    (serialize_example([2, 400, 3], 3, 2), "record 0: ids has 400, which isn't among the 40")])
def test_a_foreign_shard_is_one_line(data_dir, serialized, words):
    path = data_dir / "train-00001.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(serialized)
    made = manifest.load(data_dir)
    content = path.read_bytes()
    shard = [shard for shard in made.shards if shard.name == path.name][0]
    path.write_bytes(content + content * (max(0, shard.bytes // len(content) - 1)))
    records = reading.Records(data_dir, made, tiny_records.VOCABULARY)
    with pytest.raises(UserError, match=f"train-00001.tfrecord isn't what.*{words}"):
        read(records)


def test_a_shard_with_fewer_examples_is_one_line(data_dir):
    made = manifest.load(data_dir)
    (data_dir / "train-00001.tfrecord").write_bytes(
        (data_dir / "eval-00000.tfrecord").read_bytes())
    records = reading.Records(data_dir, made, tiny_records.VOCABULARY)
    with pytest.raises(UserError, match="has 10 examples instead of 20"):
        read(records)


def test_another_vocabulary_is_one_line(data_dir):
    path = data_dir / "vocab.txt"
    path.write_text(path.read_text() + "another\n")
    with pytest.raises(UserError, match="isn't the vocabulary of these records: it has 41 pieces"):
        reading.open_records(data_dir)
    path.unlink()
    with pytest.raises(UserError, match="cannot read the vocabulary"):
        reading.open_records(data_dir)

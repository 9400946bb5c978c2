"""A shard is complete or absent; its examples are read in order, or an error names the record."""

import errno
import hashlib
import os
import shutil
from unittest import mock

import pytest
import tensorflow as tf

from electra_tf.core import atomic_file
from electra_tf.core.errors import UserError
from electra_tf.data import shards
from electra_tf.data.manifest import load_records
from electra_tf.data.records import stored_ids
from electra_tf.data.shards import write_shard
from tests.support import tiny_records


def test_a_shard_holds_its_examples_and_its_entry_describes_it(tmp_path):
    path = tmp_path / "train-00000.tfrecord"
    shard = write_shard(path, "train", iter([(b"one", 3), (b"three", 5)]))
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(path))] == [b"one", b"three"]
    content = path.read_bytes()
    assert (shard.name, shard.split, shard.examples, shard.tokens, shard.bytes, shard.sha256) == (
        path.name, "train", 2, 8, len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(("error", "reported"), [
    (KeyError("midway"), KeyError),
    (OSError(errno.ENOSPC, "No space left on device"), UserError)])
def test_an_error_midway_leaves_the_old_file_and_nothing_else(tmp_path, error, reported):
    path = tmp_path / "train-00000.tfrecord"
    path.write_bytes(b"old")

    def examples():
        yield b"one", 3
        raise error

    with pytest.raises(reported, match="midway|train-00000.tfrecord: No space left.*; free some"):
        write_shard(path, "train", examples())
    assert path.read_bytes() == b"old"
    (tmp_path / ".unfinished-1-train-00000.tfrecord").touch()  # A killed process leaves this.
    atomic_file.remove_unfinished(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("code, fix", [
    (errno.EACCES, "that you may write to"), (errno.EIO, "choose another directory"),
    (errno.ENOTEMPTY, "another process has written it in the meantime; use that")])
def test_an_error_of_the_system_becomes_a_line_with_the_fix(tmp_path, code, fix):
    with mock.patch.object(os, "replace", side_effect=OSError(code, os.strerror(code))):
        with pytest.raises(UserError, match=f"cannot write .*file.json: .*{fix}"):
            atomic_file.write_atomically(tmp_path / "file.json", b"content")
    assert list(tmp_path.iterdir()) == []


def test_examples_of_a_shard_come_in_their_order(records, monkeypatch):
    monkeypatch.setattr(shards, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    loaded = load_records(records)
    shard = loaded.shards["train"][0]
    expected = list(tf.data.TFRecordDataset(str(records / shard.name)).as_numpy_iterator())
    for stop in (None, 18):
        examples = [ids.tolist() for ids in shards.stored_examples(loaded, shard, stop)]
        assert examples == [stored_ids(content, 2)[0].tolist() for content in expected[:stop]]


def test_the_first_examples_are_of_all_training_shards_in_proportion(records):
    loaded = load_records(records)
    train = loaded.shards["train"]
    expected = [ids.tolist() for shard in train for ids in shards.stored_examples(
        loaded, shard, -(-shard.examples // 2))]
    count = sum(shard.examples for shard in train) / 2
    assert [ids.tolist() for ids in shards.first_examples(loaded, count)] == expected
    assert len([*shards.first_examples(loaded, 10**6)]) == 2 * count


def flip_bit(offset):
    def change(content):
        return content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1:]
    return change


def claim_size(content):
    """Returns records the second of which claims 2**40 bytes, with the right checksum of these."""
    second = 16 + int.from_bytes(content[:8], "little")
    return content[:second] + (1 << 40).to_bytes(8, "little") + bytes.fromhex("aa3d6be4")


@pytest.mark.parametrize(("change", "words"), [
    (lambda content: b"", "has 0 examples instead of"),
    (lambda content: content[:5], "has 0 examples instead of"),
    (lambda content: content[:-3], "a record is cut off"),
    (claim_size, r"a record is cut off or changed \(record 1\)"),
    *((flip_bit(offset), "cut off or changed") for offset in (60, -9, 7, 0))])
def test_a_damaged_shard_is_named(records, tmp_path, change, words):
    copy = shutil.copytree(records, tmp_path / "copy")
    for shard in copy.glob("train-*"):
        shard.write_bytes(change(shard.read_bytes()))
    with pytest.raises(UserError, match=rf"train-0000\d.tfrecord isn't what.*{words}") as error:
        shards.require_readable(load_records(copy))
    assert str(error.value).count("isn't what manifest.json says") == 1


def test_the_first_record_is_checked_before_training(records, tmp_path):
    copy = shutil.copytree(records, tmp_path / "copy")
    (copy / "train-00000.tfrecord").write_bytes(claim_size(bytes(16))[16:])
    with pytest.raises(UserError, match=r"train-00000.tfrecord .*changed \(record 0\)"):
        shards.check_first_examples(load_records(copy))

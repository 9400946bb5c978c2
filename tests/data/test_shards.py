"""A shard is whole or it isn't there."""

import errno
import hashlib
import os
from unittest import mock

import pytest
import tensorflow as tf

from data_prep import record_builder
from electra_tf.data.shards import write_shard
from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError


def test_a_shard_holds_its_examples_and_its_entry_describes_it(tmp_path):
    path = tmp_path / "train-00000.tfrecord"
    shard = write_shard(path, "train", iter([(b"one", 3), (b"three", 5)]))
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(path))] == [b"one", b"three"]
    content = path.read_bytes()
    assert (shard.name, shard.split, shard.examples, shard.tokens, shard.bytes, shard.sha256) == (
        path.name, "train", 2, 8, len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(("error", "told"), [
    (KeyError("midway"), KeyError),
    (OSError(errno.ENOSPC, "No space left on device"), UserError)])
def test_an_error_midway_leaves_the_old_file_and_nothing_else(tmp_path, error, told):
    path = tmp_path / "train-00000.tfrecord"
    path.write_bytes(b"old")

    def examples():
        yield b"one", 3
        raise error

    with pytest.raises(told, match="midway|train-00000.tfrecord: No space left.*; free some"):
        write_shard(path, "train", examples())
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("code, fix", [
    (errno.ENOSPC, "free some space"), (errno.EACCES, "that you may write to"),
    (errno.EROFS, "Read-only"), (errno.EIO, "choose another directory"),
    (errno.ENOTEMPTY, "another process has written it meanwhile; use that")])
def test_what_the_system_says_becomes_a_line_with_the_fix(tmp_path, code, fix):
    with mock.patch.object(os, "replace", side_effect=OSError(code, os.strerror(code))):
        with pytest.raises(UserError, match=f"cannot write .*file.json: .*{fix}"):
            atomic_file.write_atomically(tmp_path / "file.json", b"content")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_a_directory_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write .*file/records: Not a directory"):
        atomic_file.make_directory(tmp_path / "file" / "records")
    with pytest.raises(UserError, match="cannot write .*file: File exists"):
        atomic_file.make_directory(tmp_path / "file")


def test_what_killed_processes_left_is_removed(tmp_path):
    (tmp_path / ".unfinished-1-train-00000.tfrecord").touch()
    (tmp_path / "train-00000.tfrecord").touch()
    record_builder.remove_unfinished(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["train-00000.tfrecord"]

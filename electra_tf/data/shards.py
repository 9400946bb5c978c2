"""TFRecord shards that are complete or do not exist."""

import errno
import os
from collections.abc import Iterable

import tensorflow as tf

from electra_tf.data import manifest, reader
from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

_LOOKED_AT = 16
"""Shards of which the first example is read: a few milliseconds each, wherever they are."""


def write_shard(
    path: Path, split: str, examples: Iterable[tuple[bytes, int]]
) -> manifest.Shard:
    """Writes one TFRecord file under a temporary name and renames it when it is whole.

    Args:
        path: the final name.
        split: "train" or "eval".
        examples: pairs of a serialized example and its number of tokens, consumed as they come.

    Returns:
        The shard's entry for the manifest.

    Raises:
        UserError: the directory is full or may not be written to.
    """
    count = tokens = 0
    with atomic_file.replacing(path) as temporary:
        try:
            with tf.io.TFRecordWriter(str(temporary)) as writer:
                for serialized, length in examples:
                    writer.write(serialized)
                    count += 1
                    tokens += length
        except tf.errors.ResourceExhaustedError as error:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        except tf.errors.OpError as error:
            reason = error.message.rpartition("; ")[2]  # "<the temporary name>; No space left".
            raise UserError(f"cannot write {path}: {reason}; free some space or choose another "
                            "directory, then run the same command again.") from error
        size, digest = temporary.stat().st_size, manifest.file_sha256(temporary)
    return manifest.Shard(name=path.name, split=split, examples=count, tokens=tokens, bytes=size,
                          sha256=digest)


def look_at_first_examples(data_dir: Path, records: manifest.Manifest) -> None:
    """Checks that shards hold what their manifest says, by the first example of some of them.

    Args:
        data_dir: where the shards are.
        records: from `manifest.load(data_dir)`.

    Raises:
        UserError: an example is longer than `max_seq_length`, shorter where packing leaves no
            padding, has ids outside of the vocabulary, or isn't one.
    """
    for shard in records.shards[::max(1, len(records.shards) // _LOOKED_AT)]:
        if shard.examples:
            first = next(reader.examples(data_dir, records, shard, pad_id=0, stop=1))
            length, most = int(first.valid.sum()), records.max_seq_length
            if records.packing == "full" and shard.examples > 1 and length < most:
                raise reader.damaged(
                    data_dir / shard.name,
                    f"max_seq_length is {most}, but its first example has {length} tokens")

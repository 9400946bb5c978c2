"""TFRecord shards that are complete or do not exist."""

import errno
import os
from collections.abc import Iterable

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from electra_tf.data import manifest
from electra_tf.data.example import stored_ids
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
            problem = _contradiction(data_dir / shard.name, shard, records)
            if problem:
                raise UserError(
                    f"{data_dir / shard.name} isn't what {manifest.MANIFEST_NAME} says: {problem}; "
                    "restore the file, or build the records again with --overwrite.")


def _contradiction(path: Path, shard: manifest.Shard, records: manifest.Manifest) -> str:
    """Returns what is wrong with a shard's first example, in words; empty if nothing is."""
    try:
        first = next(tf.data.TFRecordDataset(str(path)).take(1).as_numpy_iterator(), b"")
        ids, boundary = stored_ids(first, records.token_bytes)
    except (tf.errors.OpError, DecodeError, ValueError):
        return "its first record is no example of ours"
    length, most = len(ids), records.max_seq_length
    if length > most or (records.packing == "full" and shard.examples > 1 and length < most):
        return f"max_seq_length is {most}, but its first example has {length} tokens"
    if np.any((ids < 0) | (ids >= records.vocabulary.size)):
        return f"an id isn't among the {records.vocabulary.size} of the vocabulary: {ids.max()}"
    if not 1 <= boundary <= length:
        return f"a first segment of {boundary} tokens, in an example of {length}"
    return ""

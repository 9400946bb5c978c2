"""TFRecord shards that are complete or do not exist."""

import errno
import os
from collections.abc import Iterable

import tensorflow as tf

from electra_tf.data.records import Shard
from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, file_sha256


def write_shard(path: Path, split: str, examples: Iterable[tuple[bytes, int]]) -> Shard:
    """Writes one TFRecord file under a temporary name and renames it when it is complete.

    `examples` are pairs of a serialized example and its number of tokens. Returns the shard's entry
    for the manifest. Raises `UserError` for a full or protected directory.
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
        size, digest = temporary.stat().st_size, file_sha256(temporary)
    return Shard(name=path.name, split=split, examples=count, tokens=tokens, bytes=size,
                 sha256=digest)

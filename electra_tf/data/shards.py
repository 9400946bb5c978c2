"""Writes TFRecord shards that are complete or do not exist, and reads them with every check."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from electra_tf.core import atomic_file
from electra_tf.core.errors import UserError, one_line
from electra_tf.core.storage import Path, file_sha256, os_errors
from electra_tf.data.pipeline import without_autotuning
from electra_tf.data.records import SPLITS, Records, Shard, checked_ids, misfit

TOKENS_TOGETHER = 1 << 18  # Positions of the examples that are read together: some megabytes.
_MAX_OPENED = 256
"""Shards that `first_examples` opens, which takes milliseconds each, more in an object store."""
_CHECKED_SHARDS = 16  # Shards whose first example is checked, which takes a few milliseconds each.


def write_shard(path: Path, split: str, examples: Iterable[tuple[bytes, int]]) -> Shard:
    """Writes one TFRecord file under a temporary name and renames it when it is complete.

    `examples` are pairs of a serialized example and its number of tokens. Returns the shard's entry
    for the manifest. Raises `UserError` for a full or protected directory.
    """
    # The file appears under its name when it is whole.
    count = tokens = 0
    with atomic_file.replacing(path) as temporary, os_errors(temporary):
        with tf.io.TFRecordWriter(str(temporary)) as writer:
            for serialized, length in examples:
                writer.write(serialized)
                count += 1
                tokens += length
        size, digest = temporary.stat().st_size, file_sha256(temporary)
    return Shard(name=path.name, split=split, examples=count, tokens=tokens, bytes=size,
                 sha256=digest)


def stored_examples(records: Records, shard: Shard, stop: int | None = None
                    ) -> Iterator[np.ndarray]:
    """Yields the ids of each example of a shard, integers [n], in order; only the first `stop`.

    Raises `UserError` that names the shard, and the record if one contradicts the manifest.
    """
    path, index = records.data_dir / shard.name, 0
    stop = shard.examples if stop is None else stop
    try:
        # Every record's size must lie within the file: TensorFlow allocates the size that a record
        # claims, and ends the process if that fails.
        size, position = path.stat().st_size, 0
        with path.open("rb") as file:
            for record in range(stop):
                header = file.read(8)  # The content's size; a checksum follows each, of 4 bytes.
                if len(header) < 8:
                    break
                position += 16 + int.from_bytes(header, "little")
                if position > size:
                    raise misfit(path, f"a record is cut off or changed (record {record:,})")
                file.seek(position)

        # The content of every record; `index` is that of the next one.
        examples = tf.data.TFRecordDataset(str(path)).take(stop)
        for batch in examples.batch(max(1, TOKENS_TOGETHER // records.max_seq_length)).with_options(
                without_autotuning()).as_numpy_iterator():
            for content in batch:
                yield checked_ids(content, records)
                index += 1

    # Each failure names the shard and, where it is known, the record.
    except UserError:  # A `ValueError`, but complete.
        raise
    except OSError as error:
        raise misfit(path, f"it can't be read ({error.strerror})") from error
    except tf.errors.DataLossError as error:
        raise misfit(path, "a record is cut off or changed "
                     f"(record {index:,} or a later one)") from error
    except tf.errors.OpError as error:
        raise misfit(path, f"it can't be read ({one_line(error.message, 200)})") from error
    except ValueError as error:
        raise misfit(path, f"record {index:,}: {error}") from error
    if index < stop:
        raise misfit(path, f"it has {index:,} examples instead of {shard.examples:,}")


def first_examples(records: Records, count: int) -> Iterator[np.ndarray]:
    """Yields the ids of about `count` training examples, integers [n] each.

    They are the first ones of at most `_MAX_OPENED` shards, in proportion to the shards' sizes.
    """
    train = records.shards["train"]
    chosen = train[::math.ceil(len(train) / _MAX_OPENED)]
    part = min(1.0, count / max(1, sum(shard.examples for shard in chosen)))
    for shard in chosen:
        yield from stored_examples(records, shard, stop=math.ceil(shard.examples * part))


def require_readable(records: Records) -> None:
    """Reads all shards; raises `UserError` that names the first record that can't be used."""
    for shard in (shard for split in SPLITS for shard in records.shards[split]):
        for _ in stored_examples(records, shard):
            pass


def check_first_examples(records: Records) -> None:
    """Checks the first example of some shards against the manifest, or raises `UserError`."""
    shards = [shard for split in SPLITS for shard in records.shards[split] if shard.examples]
    for shard in shards[::max(1, len(shards) // _CHECKED_SHARDS)]:
        ids = next(stored_examples(records, shard, stop=1))
        if records.packing == "full" and 1 < shard.examples and len(ids) < records.max_seq_length:
            raise misfit(records.data_dir / shard.name, f"record 0: ids has {len(ids)} tokens; "
                         f"max_seq_length is {records.max_seq_length} and packing is full")

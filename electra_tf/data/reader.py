"""Reads whole shards in order and compares every record with the manifest."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from electra_tf.data.records import SPLITS, Records, Shard, checked_ids, misfit
from electra_tf.platform.errors import one_line

TOKENS_TOGETHER = 1 << 18
"""Positions of the examples that are read together: some megabytes."""


def serialized_examples(records: Records, shard: Shard, *, start: int = 0,
                        stop: int | None = None) -> Iterator[np.ndarray]:
    """Yields serialized examples [start, stop) of a shard in order, object [B] of bytes.

    A batch has at most `TOKENS_TOGETHER` positions. Raises `UserError` that names the shard, and
    the record if one contradicts the manifest.
    """
    path, number = records.data_dir / shard.name, start
    stop = shard.examples if stop is None else stop
    try:
        path.open("rb").close()
        for batch in tf.data.TFRecordDataset(str(path)).skip(start).take(stop - start).batch(
                max(1, TOKENS_TOGETHER // records.max_seq_length)).as_numpy_iterator():
            for content in batch:
                checked_ids(content, records)
                number += 1
            yield batch
    except OSError as error:
        raise misfit(path, f"it can't be read ({error.strerror})") from error
    except tf.errors.DataLossError as error:
        raise misfit(path, "a record is cut off or changed "
                     f"(record {number:,} or a later one)") from error
    except tf.errors.OpError as error:
        raise misfit(path, f"it can't be read ({one_line(error.message, 200)})") from error
    except ValueError as error:
        raise misfit(path, f"record {number:,}: {error}") from error
    if number < stop:
        raise misfit(path, f"it has {number:,} examples instead of {shard.examples:,}")


def require_whole(records: Records) -> None:
    """Reads all shards; raises `UserError` that names the first record that can't be used."""
    for shard in (shard for split in SPLITS for shard in records.shards[split]):
        for _ in serialized_examples(records, shard):
            pass

"""From TFRecord shards to batches of static shape.

What is kept in memory is a few windows of serialized examples, and a table of the windows that the
run will read, of some bytes per shard: nothing grows with the number of examples.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.data.cutting import Cutting
from electra_tf.data.example import Batch, parse_examples
from electra_tf.data.mixture import SHARES, Mixture, Source
from electra_tf.data.order import ShuffleWindow, part_of, windows

LOADED_WINDOWS_AHEAD = 1
BATCHES_AHEAD = 4
SHARDS_READ_TOGETHER = 4
"""Of a window; an object store gives one reader some 50 MB/s."""
_BUFFER_BYTES = 1 << 20
"""Read at once; from an object store every read is a request."""


class StoredRow(NamedTuple):
    """A serialized example, and which row of it is meant."""

    example: tf.Tensor
    """string [...]."""
    first: tf.Tensor
    """int64 [...], as `Cutting.first_tokens`."""


def training_batches(records: Mixture, *, pad_id: int, seed: int, window_examples: int,
                     global_batch_size: int, first_step: int, last_step: int,
                     context: tf.distribute.InputContext,
                     length: int | None = None) -> tf.data.Dataset:
    """Returns one worker's share of the batches of steps [first_step, last_step).

    The global batch of a step doesn't depend on how many replicas share it: replica r of R reads
    rows [r * B / R, (r + 1) * B / R).

    Args:
        records: to read. Of several directories each has an endless stream of its own, epoch
            after epoch; every block of `SHARES` rows takes as many from each as its share says,
            in an order drawn from (seed, block).
        pad_id: id that fills up short examples.
        seed: of the order.
        window_examples: see `electra_tf.data.order`; several directories divide it by share.
        global_batch_size: B, a multiple of the number of replicas.
        first_step: a run that resumes at step t begins there.
        last_step: one past the last step; the dataset ends.
        context: which worker of how many.
        length: L, tokens of a row; less than the records' cuts examples into rows, which are
            shuffled one by one. Default: the records'.

    Returns:
        Dataset of `Batch` with B / R rows; successive elements go to the worker's replicas.
    """
    cutting = Cutting(records.max_seq_length, length or records.max_seq_length)
    rows = _rows(records, cutting, seed=seed, window_examples=window_examples,
                 start=first_step * global_batch_size, stop=last_step * global_batch_size)
    per_worker = global_batch_size // context.num_input_pipelines
    per_replica = global_batch_size // context.num_replicas_in_sync
    first_row = context.input_pipeline_id * per_worker

    def own_share(batch: StoredRow) -> tf.data.Dataset:
        mine = (part[first_row:first_row + per_worker] for part in batch)
        return tf.data.Dataset.from_tensor_slices(
            StoredRow(*(tf.reshape(part, [-1, per_replica]) for part in mine)))

    return (
        rows
        .batch(global_batch_size, drop_remainder=True)
        .flat_map(own_share)
        .map(lambda rows: _parse(rows, records, cutting, pad_id),
             num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(BATCHES_AHEAD)
    )


def evaluation_batches(records: Mixture, *, pad_id: int, global_batch_size: int,
                       context: tf.distribute.InputContext,
                       length: int | None = None) -> tf.data.Dataset:
    """Returns one worker's share of all held-out examples, each with all of its rows.

    They come in the order of the manifest; of several directories one example of each in turn,
    until all are read. The last batch is filled up with empty rows, on which nothing is valid.

    Args and returns as for `training_batches`.
    """
    cutting = Cutting(records.max_seq_length, length or records.max_seq_length)
    per_worker = global_batch_size // context.num_input_pipelines
    per_replica = global_batch_size // context.num_replicas_in_sync
    first_row = context.input_pipeline_id * per_worker

    def all_rows(example: tf.Tensor) -> tf.data.Dataset:
        numbers = tf.range(cutting.rows, dtype=tf.int64)
        first = cutting.first_tokens(numbers, tf.constant(0, tf.int64))
        return tf.data.Dataset.from_tensor_slices(
            StoredRow(tf.fill([cutting.rows], example), first))

    def own_share(batch: Batch) -> tf.data.Dataset:
        full = Batch(*(_fill(part, global_batch_size) for part in batch))
        mine = (part[first_row:first_row + per_worker] for part in full)
        return tf.data.Dataset.from_tensor_slices(
            Batch(*(tf.reshape(part, [-1, per_replica, part.shape[-1]]) for part in mine)))

    held_out = [tf.data.TFRecordDataset([path for path, _ in source.shards("eval")])
                for source in records.sources if source.examples("eval")]
    in_turn = tf.data.Dataset.range(len(held_out)).repeat()
    return (
        tf.data.Dataset.choose_from_datasets(held_out, in_turn, stop_on_empty_dataset=False)
        .flat_map(all_rows)
        .batch(global_batch_size)
        .map(lambda rows: _parse(rows, records, cutting, pad_id))
        .flat_map(own_share)
        .prefetch(BATCHES_AHEAD)
    )


def _rows(records: Mixture, cutting: Cutting, *, seed: int, window_examples: int, start: int,
          stop: int) -> tf.data.Dataset:
    """Yields the `StoredRow`s [start, stop) of the run."""
    if len(records.sources) == 1:
        return _stream(records.sources[0], cutting, seed=seed, window_examples=window_examples,
                       start=start, stop=stop)
    first_block, last_block = start // SHARES, -(-stop // SHARES)
    streams = [
        _stream(source, cutting, seed=seed, stream=number, start=first_block * source.share,
                window_examples=-(-window_examples * source.share // SHARES),
                stop=last_block * source.share)
        for number, source in enumerate(records.sources)]
    members = np.repeat(np.arange(len(streams)), [source.share for source in records.sources])

    def block(number: tf.Tensor) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(tf.random.experimental.stateless_shuffle(
            tf.constant(members, tf.int64), seed=tf.stack([tf.constant(seed, tf.int64), number])))

    choices = tf.data.Dataset.range(first_block, last_block).flat_map(block)
    # Less than a block is read in vain where a run resumes.
    return (tf.data.Dataset.choose_from_datasets(streams, choices)
            .skip(start % SHARES).take(stop - start))


def _stream(source: Source, cutting: Cutting, *, seed: int, window_examples: int, start: int,
            stop: int, stream: int = 0) -> tf.data.Dataset:
    """Yields rows [start, stop) of one directory's endless stream; the next window loads then."""
    paths, sizes = zip(*source.shards("train"), strict=True)
    members, numbers = _table(windows(
        sizes, seed=seed, window_rows=window_examples, start=start, stop=stop, rows=cutting.rows,
        stream=stream))
    paths, sizes, members = tf.constant(paths), tf.constant(sizes, tf.int64), tf.constant(members)

    def load(window: tf.Tensor) -> StoredRow:
        first, last, part, parts, *shuffle = tf.unstack(window)
        own = members[first:last]
        examples = _read(tf.gather(paths, own), *part_of(tf.gather(sizes, own), part, parts))
        return _shuffled(examples, shuffle, cutting)

    return (
        tf.data.Dataset.from_tensor_slices(numbers)
        .map(load)
        .prefetch(LOADED_WINDOWS_AHEAD)
        .flat_map(tf.data.Dataset.from_tensor_slices)
    )


def _table(needed: Iterable[ShuffleWindow]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the windows' shards end to end, int32 [M], and int64 [W, 8] that says the rest.

    Of each window: its first shard and one past the last, then `ShuffleWindow`'s numbers. Windows
    of the same shards follow each other and name them once.
    """
    members: list[int] = []
    numbers: list[tuple[int, ...]] = []
    shards: tuple[int, ...] = ()
    for window in needed:
        if window.shards is not shards:
            shards = window.shards
            members.extend(shards)
        numbers.append((len(members) - len(shards), len(members), window.part, window.parts,
                        window.rows, window.seed, window.start, window.stop))
    return np.array(members, np.int32), np.array(numbers, np.int64).reshape([-1, 8])


def _shuffled(examples: tf.Tensor, shuffle: Sequence[tf.Tensor], cutting: Cutting) -> StoredRow:
    """Returns rows [start, stop) of a window's shuffle."""
    size, seed, start, stop = shuffle
    with tf.control_dependencies([tf.debugging.assert_equal(
            tf.size(examples, tf.int64) * cutting.rows, size,
            message="a shard holds fewer examples than its manifest says")]):
        order = tf.random.experimental.stateless_shuffle(
            tf.range(size), seed=tf.stack([seed, size]))[start:stop]
    return StoredRow(tf.gather(examples, order // cutting.rows),
                     cutting.first_tokens(order % cutting.rows, seed))


def _read(files: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Returns records [first, last) of each of F files, string [their number], in their order."""
    def own_part(file: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        records = tf.data.TFRecordDataset(file, buffer_size=_BUFFER_BYTES).skip(first)
        batch = records.take(last - first).batch(tf.maximum(last - first, 1))
        return batch.reduce(tf.zeros([0], tf.string), lambda _, batch: batch)

    contents = tf.data.Dataset.from_tensor_slices((files, first, last)).map(
        own_part, num_parallel_calls=SHARDS_READ_TOGETHER, deterministic=True)
    return contents.ragged_batch(tf.size(files, tf.int64)).get_single_element().values


def _parse(rows: StoredRow, records: Mixture, cutting: Cutting, pad_id: int) -> Batch:
    whole = parse_examples(rows.example, records.max_seq_length, records.token_bytes, pad_id)
    return cutting(whole, rows.first, pad_id)


def _fill(rows: tf.Tensor, batch_size: int) -> tf.Tensor:
    """Pads [b, L] with zero rows (False for bool) to [batch_size, L]."""
    missing = batch_size - tf.shape(rows)[0]
    filled = tf.pad(rows, [[0, missing], [0, 0]])
    return tf.ensure_shape(filled, [batch_size, rows.shape[1]])

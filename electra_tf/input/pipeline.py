"""From TFRecord shards to batches of static shape."""

from collections.abc import Iterable

import tensorflow as tf

from electra_tf.input.order import ShardSize, ShuffleWindow, windows
from electra_tf.records.example import Batch, parse_examples
from electra_tf.records.manifest import Manifest
from electra_tf.storage import Path

LOADED_WINDOWS_AHEAD = 1
BATCHES_AHEAD = 4


def training_batches(data_dir: Path, manifest: Manifest, *, pad_id: int, seed: int,
                     window_examples: int, global_batch_size: int, first_step: int,
                     last_step: int, context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Returns one worker's share of the batches of steps [first_step, last_step).

    The global batch of a step doesn't depend on how many replicas share it: replica r of R reads
    rows [r * B / R, (r + 1) * B / R).

    Args:
        data_dir: where the shards are.
        manifest: of the dataset.
        pad_id: id that fills up short examples.
        seed: of the order.
        window_examples: see `electra_tf.input.order`.
        global_batch_size: B, a multiple of the number of replicas.
        first_step: a run that resumes at step t begins there.
        last_step: one past the last step; the dataset ends.
        context: which worker of how many.

    Returns:
        Dataset of `Batch` with B / R rows; successive elements go to the worker's replicas.
    """
    shards = [ShardSize(shard.name, shard.examples) for shard in manifest.shards_of("train")]
    needed = windows(
        shards, seed=seed, window_examples=window_examples,
        start=first_step * global_batch_size, stop=last_step * global_batch_size)
    per_worker = global_batch_size // context.num_input_pipelines
    per_replica = global_batch_size // context.num_replicas_in_sync
    first_row = context.input_pipeline_id * per_worker

    def own_share(rows: tf.Tensor) -> tf.data.Dataset:
        mine = tf.reshape(rows[first_row:first_row + per_worker], [-1, per_replica])
        return tf.data.Dataset.from_tensor_slices(mine)

    return (
        _window_examples(data_dir, needed)
        .batch(global_batch_size, drop_remainder=True)
        .flat_map(own_share)
        .map(lambda rows: _parse(rows, manifest, pad_id), num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(BATCHES_AHEAD)
    )


def evaluation_batches(data_dir: Path, manifest: Manifest, *, pad_id: int,
                       global_batch_size: int,
                       context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Returns one worker's share of all held-out examples, in the manifest's order.

    The last batch is filled up with empty rows, on which nothing is valid.

    Args and returns as for `training_batches`.
    """
    files = [str(data_dir / shard.name) for shard in manifest.shards_of("eval")]
    per_worker = global_batch_size // context.num_input_pipelines
    per_replica = global_batch_size // context.num_replicas_in_sync
    first_row = context.input_pipeline_id * per_worker

    def own_share(batch: Batch) -> tf.data.Dataset:
        full = Batch(*(_fill(part, global_batch_size) for part in batch))
        mine = (part[first_row:first_row + per_worker] for part in full)
        return tf.data.Dataset.from_tensor_slices(
            Batch(*(tf.reshape(part, [-1, per_replica, part.shape[-1]]) for part in mine)))

    return (
        tf.data.TFRecordDataset(files)
        .batch(global_batch_size)
        .map(lambda rows: _parse(rows, manifest, pad_id))
        .flat_map(own_share)
        .prefetch(BATCHES_AHEAD)
    )


def _window_examples(data_dir: Path, needed: Iterable[ShuffleWindow]) -> tf.data.Dataset:
    """Serialized examples, window after window; the next window loads meanwhile."""
    needed = list(needed)
    files = ["\n".join(str(data_dir / name) for name in window.shards) for window in needed]
    numbers = [[window.examples, window.seed, window.start, window.stop] for window in needed]
    table = (tf.constant(files, tf.string, [len(needed)]),
             tf.constant(numbers, tf.int64, [len(needed), 4]))
    return (
        tf.data.Dataset.from_tensor_slices(table)
        .map(_load_shuffled)
        .prefetch(LOADED_WINDOWS_AHEAD)
        .flat_map(tf.data.Dataset.from_tensor_slices)
    )


def _load_shuffled(files: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
    """Reads a whole window, string [examples], and returns rows [start, stop) of its shuffle."""
    examples, seed, start, stop = tf.unstack(numbers)
    rows = tf.data.TFRecordDataset(tf.strings.split(files, "\n")).batch(examples)
    rows = rows.get_single_element()
    with tf.control_dependencies([tf.debugging.assert_equal(
            tf.size(rows, tf.int64), examples,
            message="a shard holds fewer examples than its manifest says")]):
        order = tf.random.experimental.stateless_shuffle(
            tf.range(examples), seed=tf.stack([seed, examples]))
    return tf.gather(rows, order[start:stop])


def _parse(rows: tf.Tensor, manifest: Manifest, pad_id: int) -> Batch:
    return parse_examples(rows, manifest.max_seq_length, manifest.token_bytes, pad_id)


def _fill(rows: tf.Tensor, batch_size: int) -> tf.Tensor:
    """Pads [b, L] with zero rows (False for bool) to [batch_size, L]."""
    missing = batch_size - tf.shape(rows)[0]
    filled = tf.pad(rows, [[0, missing], [0, 0]])
    return tf.ensure_shape(filled, [batch_size, rows.shape[1]])

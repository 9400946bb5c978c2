"""Reads TFRecord shards into batches of static shape with `tf.data`, in the order of `records`.

Memory holds a few shuffle buffers of serialized examples and some bytes per shard. The pipeline is
one graph without Python functions, which the hosts of a TPU pod can run.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.records import ID_DTYPES, Records, ShuffleBuffer, part_of, shuffle_buffers

_BATCHES_AHEAD = 4
_SHARDS_READ_TOGETHER = 4
"""Shards of a buffer that are read at once; an object store gives one reader about 50 MB/s."""
_BUFFER_BYTES = 1 << 20  # Bytes of one read, which is a request to an object store.
NOT_CONVERTED = tf.autograph.experimental.do_not_convert
"""AutoGraph, which nothing here needs, would delay the first step of pre-training by 0.4 s."""


@NOT_CONVERTED
def training_batches(records: Records, *, pad_id: int, seed: int, buffer_examples: int,
                     global_batch_size: int, first_step: int, last_step: int,
                     input_context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Returns one worker's share of the batches of steps [first_step, last_step).

    Replica r of R reads rows [r * B / R, (r + 1) * B / R) of a global batch of B rows: successive
    elements of the dataset, `Batch`es of B / R rows, go to the worker's replicas. At most
    `buffer_examples` are shuffled together.
    """
    sizes = [shard.examples for shard in records.shards["train"]]
    buffers = shuffle_buffers(
        sizes, seed=seed, buffer_examples=buffer_examples,
        start=first_step * global_batch_size, stop=last_step * global_batch_size)
    options = without_autotuning()
    options.experimental_warm_start = True  # The first buffer is read while the step is traced.
    return (
        _examples(records.paths("train"), sizes, buffers)
        .batch(global_batch_size, drop_remainder=True)
        .flat_map(lambda batch: _own_share(batch, global_batch_size, input_context))
        .map(lambda examples: parse_examples(examples, records, pad_id),
             num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(_BATCHES_AHEAD)
        .with_options(options)
    )


@NOT_CONVERTED
def evaluation_batches(records: Records, *, pad_id: int, global_batch_size: int,
                       input_context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Returns one worker's share of the held-out examples; see `training_batches`.

    Examples come in the order of the manifest. The last batch is padded with rows without valid
    positions.
    """
    def parse_and_fill(examples: tf.Tensor) -> Batch:
        missing = global_batch_size - tf.size(examples)
        parts = parse_examples(examples, records, pad_id)  # Filled with zeros, False for bool.
        return Batch(*(tf.ensure_shape(tf.pad(part, [[0, missing], [0, 0]]),
                                       [global_batch_size, part.shape[1]]) for part in parts))

    return (
        tf.data.TFRecordDataset(records.paths("eval"))
        .batch(global_batch_size)
        .map(parse_and_fill)
        .flat_map(lambda batch: _own_share(batch, global_batch_size, input_context))
        .prefetch(_BATCHES_AHEAD)
        .with_options(without_autotuning())
    )


def without_autotuning() -> tf.data.Options:
    """Returns options that turn autotuning off, whose thread can delay the end by a minute.

    TensorFlow can wake the thread before it sets the flag to end; the thread then sleeps again.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


def _own_share(batch: tf.Tensor | Batch, batch_size: int,
               input_context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Returns a worker's rows of a global batch, an element for each of its replicas."""
    per_worker = batch_size // input_context.num_input_pipelines
    per_replica = batch_size // input_context.num_replicas_in_sync
    first_row = input_context.input_pipeline_id * per_worker
    return tf.data.Dataset.from_tensor_slices(tf.nest.map_structure(
        lambda part: tf.reshape(part[first_row:first_row + per_worker],
                                [-1, per_replica, *part.shape[1:]]), batch))


def _examples(paths: Sequence[str], sizes: Sequence[int],
              buffers: Iterable[ShuffleBuffer]) -> tf.data.Dataset:
    """Returns the serialized examples of buffers; the next buffer is loaded meanwhile."""
    # The shards of all buffers end to end; successive buffers of the same shards share them. A
    # row of the table is a buffer: where its shards begin and end there, and its fields.
    members: list[int] = []
    table, shards = [], ()
    for buffer in buffers:
        if buffer.shards is not shards:
            shards = buffer.shards
            members.extend(shards)
        table.append((len(members) - len(shards), len(members), buffer.part, buffer.parts,
                      buffer.size, buffer.seed, buffer.start, buffer.stop))
    paths, sizes, members = (
        tf.constant(paths), tf.constant(sizes, tf.int64), tf.constant(members, tf.int32))

    def load(buffer: tf.Tensor) -> tf.Tensor:
        # The buffer's part of each of its shards, string [size].
        begin, end, part, parts, size, seed, start, stop = tf.unstack(buffer)
        shards = members[begin:end]
        examples = _read(tf.gather(paths, shards), *part_of(tf.gather(sizes, shards), part, parts))

        # Shuffled completely, by (seed, size).
        with tf.control_dependencies([tf.debugging.assert_equal(
                tf.size(examples, tf.int64), size,
                message="a shard holds fewer examples than its manifest says")]):
            order = tf.random.experimental.stateless_shuffle(
                tf.range(size), seed=tf.stack([seed, size]))
        return tf.gather(examples, order[start:stop])

    return (
        tf.data.Dataset.from_tensor_slices(np.array(table, np.int64).reshape([-1, 8]))
        .map(load)
        .prefetch(1)
        .flat_map(tf.data.Dataset.from_tensor_slices)
    )


def _read(files: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Returns records [first, last) of each of F files, string [sum of last - first], in order."""
    def read_file(file: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        records = tf.data.TFRecordDataset(file, buffer_size=_BUFFER_BYTES).skip(first)
        batch = records.take(last - first).batch(tf.maximum(last - first, 1))
        return batch.with_options(without_autotuning()).reduce(
            tf.zeros([0], tf.string), lambda _, batch: batch)

    contents = tf.data.Dataset.from_tensor_slices((files, first, last)).map(
        read_file, num_parallel_calls=_SHARDS_READ_TOGETHER, deterministic=True)
    # One ragged batch of all files, whose values are the records end to end.
    parts = contents.ragged_batch(tf.size(files, tf.int64)).with_options(without_autotuning())
    return parts.get_single_element().values


def parse_examples(serialized: tf.Tensor, records: Records, pad_id: int) -> Batch:
    """Parses serialized examples, string [B], in one op and pads them to the records' length.

    Its run raises `InvalidArgumentError` for a longer example, for contradicting fields, and for an
    id outside of the vocabulary, which a GPU would ignore.
    """
    # Bytes of ids, string [B], and the first segment's number of tokens, int64 [B].
    length, token_bytes, size = records.max_seq_length, records.token_bytes, records.vocab_size
    parsed = tf.io.parse_example(serialized, {
        "ids": tf.io.FixedLenFeature([], tf.string),
        "first_segment_length": tf.io.FixedLenFeature([], tf.int64),
    })
    boundary = parsed["first_segment_length"][:, tf.newaxis]
    sizes = tf.strings.length(parsed["ids"])[:, tf.newaxis]
    lengths = sizes // token_bytes

    # Lengths are checked before the bytes are decoded, zero-padded, to int32 [B, L].
    checks = [
        tf.debugging.assert_less_equal(
            lengths, length,
            message=f"an example is longer than max_seq_length={length}; rebuild the records"),
        tf.debugging.assert_equal(
            lengths * token_bytes, sizes,
            message=f"an example does not hold {token_bytes}-byte ids; rebuild the records"),
        tf.debugging.Assert(
            tf.reduce_all((boundary >= 1) & (boundary <= tf.cast(lengths, tf.int64))),
            ["first_segment_length is not within its example; rebuild the records"]),
    ]
    with tf.control_dependencies(checks):
        ids = tf.io.decode_raw(parsed["ids"], tf.as_dtype(ID_DTYPES[token_bytes]),
                               little_endian=True, fixed_length=length * token_bytes)
    ids = tf.ensure_shape(tf.cast(ids, tf.int32), [serialized.shape[0], length])

    # Positions [1, L] before a row's length are tokens, those from the boundary on the second
    # segment. Ids are checked before [PAD] fills the rest.
    positions = tf.range(length)[tf.newaxis]
    padding_mask = positions < lengths
    second = padding_mask & (positions >= tf.cast(boundary, tf.int32))
    with tf.control_dependencies([tf.debugging.Assert(
            tf.reduce_all((ids >= 0) & (ids < size)),
            [f"the records have an id outside the vocabulary of {size:,} tokens"])]):
        ids = tf.where(padding_mask, ids, pad_id)
    return Batch(ids=ids, padding_mask=padding_mask, segment_ids=tf.cast(second, tf.int32))

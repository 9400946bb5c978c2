"""Every example once an epoch, well mixed, for any worker, in an order that begins anywhere."""

import collections
import time
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import evaluation_batches, training_batches
from electra_tf.data.records import SHARDS_MIXED, Shard, part_of, shuffle_buffers
from electra_tf.data.shards import stored_examples
from tests.support import tiny_records

SIZES = [30, 20, 36, 7]
EPOCH_SIZE = 93


def stream_positions(**changes) -> list[tuple]:
    """The stream as (part of the shards, shuffle seed, row), one entry per row."""
    arguments = {"seed": 1, "buffer_examples": 40, "start": 0, "stop": EPOCH_SIZE} | changes
    return [(buffer.part, buffer.seed, row) for buffer in shuffle_buffers(SIZES, **arguments)
            for row in range(buffer.start, buffer.stop)]


def examples_of(buffer) -> list[tuple[int, int]]:
    """(shard, number) of every example in a buffer."""
    return [(shard, number) for shard in buffer.shards
            for number in range(*part_of(SIZES[shard], buffer.part, buffer.parts))]


@pytest.mark.parametrize("buffer", [1, 7, 40, 92, 93, 1000])
def test_an_epoch_holds_every_example_once(buffer):
    seen = list(shuffle_buffers(SIZES, seed=1, buffer_examples=buffer, start=0, stop=EPOCH_SIZE))
    assert sorted(example for buffer in seen for example in examples_of(buffer)) == sorted(
        (shard, number) for shard, size in enumerate(SIZES) for number in range(size))
    assert all((buffer.start, buffer.stop) == (0, buffer.size) for buffer in seen)
    assert all(buffer.size == len(examples_of(buffer)) for buffer in seen)


@pytest.mark.parametrize("start", [0, 1, 40, 92, 93, 94, 200, 5 * EPOCH_SIZE + 17])
def test_the_stream_can_be_entered_anywhere_and_differs_by_epoch_and_seed(start):
    stream = stream_positions(stop=6 * EPOCH_SIZE)
    assert stream_positions(start=start, stop=6 * EPOCH_SIZE) == stream[start:]
    assert len({str(part) for part in (
        stream[:EPOCH_SIZE], stream[EPOCH_SIZE:2 * EPOCH_SIZE], stream_positions(seed=2))}) == 3


def test_a_buffer_takes_the_same_part_of_every_shard():
    """93 examples in buffers of 31: thirds of 30, 20, 36 and 7."""
    seen = list(shuffle_buffers(SIZES, seed=3, buffer_examples=31, start=0, stop=EPOCH_SIZE))
    assert [[sum(number == shard for number, _ in examples_of(buffer)) for shard in range(4)]
            for buffer in seen] == [[10, 6, 12, 2], [10, 7, 12, 2], [10, 7, 12, 3]]
    stream = shuffle_buffers(SIZES, seed=3, buffer_examples=EPOCH_SIZE, start=0, stop=EPOCH_SIZE)
    assert len(list(stream)) == 1


@pytest.mark.parametrize(("count", "size", "buffer", "groups"), [
    (2 * SHARDS_MIXED, 100, 1000, [64, 64]),
    (2 * SHARDS_MIXED - 1, 100, 1000, [127]),
    (3 * SHARDS_MIXED + 2, 100, 1000, [64, 65, 65]),
    (1000, 10, 2000, [200] * 5),  # 64 wouldn't fill a buffer.
    (5, 100, 1000, [5]),
])
def test_many_shards_are_mixed_so_many_at_a_time(count, size, buffer, groups):
    seen = list(shuffle_buffers(
        [size] * count, seed=1, buffer_examples=buffer, start=0, stop=count * size))
    assert [len(shards) for shards in dict.fromkeys(buffer.shards for buffer in seen)] == groups
    assert max(buffer.size for buffer in seen) <= buffer + max(groups)


BATCH = 8
EXAMPLES = sum(tiny_records.TRAIN_SHARDS)


def context(workers=1, worker=0, replicas=1):
    return tf.distribute.InputContext(workers, worker, replicas)


def batches(records, first_step=0, last_step=5, ctx=None, buffer=40):
    return list(training_batches(
        load_records(records), pad_id=0, seed=1, buffer_examples=buffer, global_batch_size=BATCH,
        first_step=first_step, last_step=last_step, input_context=ctx or context()))


def test_two_epochs_hold_every_example_twice(records):
    seen = batches(records, last_step=2 * EXAMPLES // BATCH)
    rows = collections.Counter(row.tobytes() for batch in seen for row in batch.ids.numpy())
    assert sum(rows.values()) == 2 * EXAMPLES // BATCH * BATCH
    epoch = collections.Counter()
    for record in tf.data.TFRecordDataset(sorted(map(str, records.glob("train-*")))):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        ids = np.frombuffer(feature["ids"].bytes_list.value[0], "<u2").astype(np.int32)
        epoch[np.pad(ids, [0, tiny_records.LENGTH - ids.size]).tobytes()] += 1
    remaining = {row: 2 * count - rows[row] for row, count in epoch.items()}
    assert min(remaining.values()) >= 0
    # The unfinished last batch.
    assert sum(remaining.values()) == 2 * EXAMPLES - sum(rows.values())


@pytest.mark.parametrize("first_step", [4, 13])
def test_a_run_that_resumes_reads_what_it_would_have_read(records, first_step):
    expected_batches = batches(records, last_step=15)
    rest = batches(records, first_step=first_step, last_step=15)
    assert len(rest) == 15 - first_step
    for expected, batch in zip(expected_batches[first_step:], rest, strict=True):
        np.testing.assert_array_equal(expected.ids, batch.ids)


@pytest.mark.parametrize(("workers", "replicas"), [(1, 2), (2, 4)])
def test_the_global_batch_doesnt_depend_on_who_shares_it(records, workers, replicas):
    expected_batches = batches(records)
    local = replicas // workers
    parts = [batches(records, ctx=context(workers, worker, replicas))
             for worker in range(workers)]
    for step, expected in enumerate(expected_batches):
        shares = [part.ids for worker in range(workers)
                  for part in parts[worker][step * local:(step + 1) * local]]
        np.testing.assert_array_equal(tf.concat(shares, axis=0), expected.ids)


def test_evaluation_reads_each_held_out_example_once_and_pads_a_batch(records):
    for replicas in (1, 2):
        seen = list(evaluation_batches(
            load_records(records), pad_id=0, global_batch_size=BATCH,
            input_context=context(replicas=replicas)))
        padding_mask = np.concatenate([batch.padding_mask for batch in seen])
        assert {batch.ids.shape[0] for batch in seen} == {BATCH // replicas}
        assert padding_mask.any(axis=1).sum() == tiny_records.HELD_OUT
        assert len(padding_mask) == 2 * BATCH


@pytest.mark.slow
def test_many_examples_cost_no_list_of_them(tmp_path):
    """3,060 shards of full examples of 128 tokens, without their files.

    Eight bytes an example would be 800 MB; tracemalloc slows it fivefold.
    """
    examples = 33_000
    shards = tuple(Shard(
        name=f"train-{number:06d}.tfrecord", split="train", examples=examples,
        tokens=128 * examples, bytes=320 * examples, sha256=f"{number:064x}")
        for number in range(3_060))
    tiny_records.manifest_of(shards, max_seq_length=128).save(tmp_path)
    tracemalloc.start()
    began = time.process_time()
    records = load_records(tmp_path)
    assert sum(shard.examples for shard in records.shards["train"]) > 10**8
    training_batches(
        records, pad_id=0, seed=1, buffer_examples=131072, global_batch_size=1024,
        first_step=900_000, last_step=10**6, input_context=tf.distribute.InputContext())
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()
    assert time.process_time() - began < 30


def test_no_records_are_read_with_an_autotuner_that_waits_for_the_clock(records, monkeypatch):
    """Freeing its iterator waits for up to a minute by a clock that can be set back meanwhile."""
    enabled, loaded, context = [], load_records(records), tf.distribute.InputContext()

    def observe(dataset):  # TensorFlow calls it for every iterator.
        enabled.append(dataset.options().autotune.enabled)
        return dataset

    monkeypatch.setattr(tf.data.Dataset, "_apply_debug_options", observe)
    for dataset in (
            training_batches(loaded, pad_id=0, seed=1, buffer_examples=40, global_batch_size=8,
                             first_step=0, last_step=3, input_context=context),
            evaluation_batches(loaded, pad_id=0, global_batch_size=4, input_context=context),
            stored_examples(loaded, loaded.shards["train"][0])):
        assert len(list(dataset)) > 0
    assert len(enabled) >= 3 and not any(value is not False for value in enabled)

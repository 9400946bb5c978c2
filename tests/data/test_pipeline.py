"""Every example once an epoch, for any worker, from any step."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import evaluation_batches, training_batches
from tests.support import tiny_records

BATCH = 8
EXAMPLES = sum(tiny_records.TRAIN_SHARDS)


def context(workers=1, worker=0, replicas=1):
    return tf.distribute.InputContext(workers, worker, replicas)


def batches(records, first_step=0, last_step=5, ctx=None, buffer=40):
    return list(training_batches(
        load_records(records), pad_id=0, seed=1, buffer_examples=buffer, global_batch_size=BATCH,
        first_step=first_step, last_step=last_step, context=ctx or context()))


def test_two_epochs_hold_every_example_twice(records):
    seen = batches(records, last_step=2 * EXAMPLES // BATCH)
    rows = collections.Counter(row.tobytes() for batch in seen for row in batch.ids.numpy())
    assert sum(rows.values()) == 2 * EXAMPLES // BATCH * BATCH
    epoch = collections.Counter()
    for record in tf.data.TFRecordDataset(sorted(map(str, records.glob("train-*")))):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        ids = np.frombuffer(feature["ids"].bytes_list.value[0], "<u2").astype(np.int32)
        epoch[np.pad(ids, [0, tiny_records.LENGTH - ids.size]).tobytes()] += 1
    left = {row: 2 * count - rows[row] for row, count in epoch.items()}
    assert min(left.values()) >= 0
    assert sum(left.values()) == 2 * EXAMPLES - sum(rows.values())  # The unfinished last batch.


@pytest.mark.parametrize("first_step", [1, 4, 13])
def test_a_run_that_resumes_reads_what_it_would_have_read(records, first_step):
    whole = batches(records, last_step=15)
    rest = batches(records, first_step=first_step, last_step=15)
    assert len(rest) == 15 - first_step
    for expected, batch in zip(whole[first_step:], rest, strict=True):
        np.testing.assert_array_equal(expected.ids, batch.ids)


@pytest.mark.parametrize(("workers", "replicas"), [(1, 2), (2, 2), (2, 4)])
def test_the_global_batch_doesnt_depend_on_who_shares_it(records, workers, replicas):
    whole = batches(records)
    local = replicas // workers
    parts = [batches(records, ctx=context(workers, worker, replicas))
             for worker in range(workers)]
    for step, expected in enumerate(whole):
        shares = [part.ids for worker in range(workers)
                  for part in parts[worker][step * local:(step + 1) * local]]
        np.testing.assert_array_equal(tf.concat(shares, axis=0), expected.ids)


def test_evaluation_reads_each_held_out_example_once_and_pads_a_batch(records):
    for replicas in (1, 2):
        seen = list(evaluation_batches(
            load_records(records), pad_id=0, global_batch_size=BATCH,
            context=context(replicas=replicas)))
        valid = np.concatenate([batch.valid for batch in seen])
        assert {batch.ids.shape[0] for batch in seen} == {BATCH // replicas}
        assert valid.any(axis=1).sum() == tiny_records.HELD_OUT
        assert len(valid) == 2 * BATCH

"""Every example once an epoch, for any worker, from any step; rows of shorter lengths."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data.manifest import load_records
from electra_tf.data.pipeline import evaluation_batches, training_batches
from tests import numbered_records, tiny_records

BATCH = 8
EXAMPLES = sum(tiny_records.TRAIN_SHARDS)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("input") / "records"
    return directory, tiny_records.write(directory)


def context(workers=1, worker=0, replicas=1):
    return tf.distribute.InputContext(workers, worker, replicas)


def batches(records, first_step=0, last_step=5, ctx=None, window=40):
    return list(training_batches(
        load_records(records[0]), pad_id=0, seed=1, window_examples=window, global_batch_size=BATCH,
        first_step=first_step, last_step=last_step, context=ctx or context()))


def test_two_epochs_hold_every_example_twice(records):
    seen = batches(records, last_step=2 * EXAMPLES // BATCH)
    rows = collections.Counter(row.tobytes() for batch in seen for row in batch.ids.numpy())
    assert sum(rows.values()) == 2 * EXAMPLES // BATCH * BATCH
    epoch = collections.Counter()
    for shard in records[1].shards_of("train"):
        directory = records[0]
        for record in tf.data.TFRecordDataset(str(directory / shard.name)):
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


def test_evaluation_reads_every_held_out_example_once_and_fills_the_last_batch(records):
    for replicas in (1, 2):
        seen = list(evaluation_batches(
            load_records(records[0]), pad_id=0, global_batch_size=BATCH,
            context=context(replicas=replicas)))
        valid = np.concatenate([batch.valid for batch in seen])
        assert {batch.ids.shape[0] for batch in seen} == {BATCH // replicas}
        assert valid.any(axis=1).sum() == tiny_records.HELD_OUT
        assert len(valid) == 2 * BATCH


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    directory = tmp_path_factory.mktemp("numbered") / "records"
    numbered_records.write(directory, tiny_records.TRAIN_SHARDS, held_out=3)
    return load_records(directory)


def half_rows(records, first_step=0, **given):
    """Ids of 30 batches of rows of 17 tokens, int32 [steps, B / R, 17]."""
    return np.stack([batch.ids for batch in training_batches(
        records, pad_id=0, seed=1, window_examples=40, global_batch_size=BATCH, length=17,
        first_step=first_step, last_step=30, context=context(**given)).as_numpy_iterator()])


def test_rows_of_half_the_length_are_shuffled_one_by_one(numbered):
    """32 tokens give 2 rows of 17 (30 = 2 x 15): each once in an epoch of 172."""
    rows = half_rows(numbered)
    epoch = numbered_records.said(rows.reshape([-1, 17]))[:2 * EXAMPLES]
    assert sorted(epoch) == [(0, number, half) for number in range(EXAMPLES) for half in (0, 1)]
    assert sum(one[1] == two[1] for one, two in zip(epoch, epoch[1:], strict=False)) < 20
    assert (rows[..., 0] == 2).all() and (rows[..., -1] == 3).all()


def test_a_run_of_shorter_rows_resumes_on_more_hosts(numbered):
    parts = [half_rows(numbered, first_step=9, workers=2, worker=worker, replicas=2)
             for worker in range(2)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), half_rows(numbered)[9:])


def test_all_rows_of_a_held_out_example_are_evaluated(numbered):
    seen = np.concatenate([batch.ids for batch in evaluation_batches(
        numbered, pad_id=0, global_batch_size=4, context=context(), length=17
    ).as_numpy_iterator()])
    assert numbered_records.said(seen[:6]) == [(0, EXAMPLES + number, half)
                                               for number in range(3) for half in (0, 1)]
    assert not seen[6:].any()

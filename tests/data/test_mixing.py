"""Several directories in one stream: shares, epochs of their own, entry anywhere, any worker."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.data import mixture, order
from electra_tf.data.order import Order, RowPlaces
from electra_tf.data.pipeline import evaluation_batches, training_batches
from tests import numbered_records

BATCH = 8
BLOCK = 20
"""Examples of a block in these tests: small, so that some steps read several."""
SHARDS = (30, 20, 36)
EXAMPLES = sum(SHARDS)
ALONE = tf.distribute.InputContext()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("mixing")
    numbered_records.write(directory / "a", SHARDS, held_out=3, label=0)
    numbered_records.write(directory / "b", SHARDS, held_out=5, label=1)
    return directory


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(mixture, "SHARES", BLOCK)
    monkeypatch.setattr(order, "SHARES", BLOCK)


def load(place, *weights):
    return mixture.load(",".join(
        f"{place / name}:{weight}" for name, weight in zip("ab", weights, strict=True)))


def read(records, first_step=0, last_step=30, context=ALONE, seed=1, **length):
    """Ids of the batches, int32 [steps, B / R, L]."""
    return np.stack([batch.ids for batch in training_batches(
        records, pad_id=0, seed=seed, window_examples=40, global_batch_size=BATCH,
        first_step=first_step, last_step=last_step, context=context, **length
    ).as_numpy_iterator()])


def evaluated(records, **length):
    return np.concatenate([batch.ids for batch in evaluation_batches(
        records, pad_id=0, global_batch_size=4, context=ALONE, **length).as_numpy_iterator()])


def said(ids):
    return numbered_records.said(ids.reshape([-1, ids.shape[-1]]))


def test_every_block_has_the_shares_in_an_order_of_its_own(place):
    labels = [label for label, _, _ in said(read(load(place, 0.75, 0.25)))]
    blocks = [tuple(labels[first:first + BLOCK]) for first in range(0, 240, BLOCK)]
    assert [sum(block) for block in blocks] == [5] * 12
    assert len(set(blocks)) == 12


def test_each_directory_has_epochs_of_its_own(place):
    """Of 240 examples 180 are of a, which has 86: two epochs, then 8 of a third. 60 are of b."""
    seen = said(read(load(place, 0.75, 0.25)))
    a, b = ([number for label, number, _ in seen if label == wanted] for wanted in (0, 1))
    epochs = [a[:EXAMPLES], a[EXAMPLES:2 * EXAMPLES]]
    assert [sorted(epoch) for epoch in epochs] == [list(range(EXAMPLES))] * 2
    assert epochs[0] != epochs[1]
    assert len(a) == 180 and len(b) == len(set(b)) == 60


@pytest.mark.parametrize("length", [17, pytest.param(32, marks=pytest.mark.slow)])
def test_a_run_that_resumes_on_more_hosts_reads_what_it_would_have_read(place, length):
    records = load(place, 0.6, 0.4)
    whole = read(records, length=length)
    for first_step, workers in ((1, 1), (9, 2), (29, 4)):
        parts = [read(records, first_step=first_step, length=length,
                      context=tf.distribute.InputContext(workers, worker, workers))
                 for worker in range(workers)]
        np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole[first_step:])


def test_a_seed_changes_the_order_and_so_does_a_directorys_number(place):
    records = load(place, 0.5, 0.5)
    assert not np.array_equal(read(records), read(records, seed=2))
    a, b = ([number for label, number, _ in said(read(records)) if label == wanted]
            for wanted in (0, 1))
    assert a != b  # Their shards are of the same sizes.


def test_a_share_of_the_window_is_each_directorys(place):
    """Of 40 rows 10 are of b, whose 86 examples take 9 windows, and 30 of a: 3 windows."""
    order = Order(records=load(place, 0.75, 0.25), places=RowPlaces(32, 32), seed=1,
                  window_examples=40)
    a, b = (list(windows) for windows in order.streams(0, 4 * EXAMPLES))
    assert [sum(window.parts for window in stream[:1]) for stream in (a, b)] == [3, 9]


def test_held_out_examples_come_in_turn_until_all_are_read(place):
    seen = [(label, number - EXAMPLES) for label, number, _ in said(evaluated(
        load(place, 0.75, 0.25)))]
    assert seen == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (1, 3), (1, 4)]


def test_a_directory_that_holds_nothing_out_is_passed_over(place):
    first, second = load(place, 0.5, 0.5).sources
    shards = tuple(shard for shard in first.manifest.shards if shard.split == "train")
    first = mixture.Source.of(
        first.data_dir, dataclasses.replace(first.manifest, shards=shards), first.share)
    records = mixture.Mixture.of([first, second])
    assert records.examples("eval") == 5
    seen = evaluated(records)
    assert [label for label, _, _ in said(seen[:5])] == [1] * 5 and not seen[5:].any()


def test_rows_of_half_the_length_are_shuffled_one_by_one(place):
    """32 tokens give 2 rows of 17 (30 = 2 x 15): each once in an epoch of 172."""
    rows = read(mixture.load(place / "a"), length=17)
    epoch = said(rows)[:2 * EXAMPLES]
    assert collections.Counter(epoch) == collections.Counter(
        (0, number, half) for number in range(EXAMPLES) for half in (0, 1))
    assert sum(one[1] == two[1] for one, two in zip(epoch, epoch[1:], strict=False)) < 20
    assert (rows[..., 0] == 2).all() and (rows[..., -1] == 3).all()


def test_all_rows_of_a_held_out_example_are_evaluated(place):
    seen = evaluated(mixture.load(place / "a"), length=17)
    assert said(seen[:6]) == [(0, EXAMPLES + number, half) for number in range(3)
                              for half in (0, 1)]
    assert not seen[6:].any()

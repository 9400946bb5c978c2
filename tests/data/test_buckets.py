"""Batches of similar lengths: everything once, little padding, the same order again."""

import itertools

import numpy as np
import pytest

from electra_tf.data import buckets
from electra_tf.data.buckets import bucket_lengths, plan_epoch


def row(length, label, tags):
    return buckets.Row(np.arange(1, length + 1, dtype=np.int32),
                       np.array([0] * (length // 2) + [1] * (length - length // 2), np.int32),
                       {"label": label}, {"tags": np.array(tags)})


@pytest.fixture
def lengths():
    return np.random.default_rng(0).integers(3, 129, 5003)


def test_an_epoch_has_every_example_once_in_its_own_order(lengths):
    first = plan_epoch(lengths, 32, seed=1, epoch=0)
    assert sorted(np.concatenate(first)) == list(range(5003))
    assert sorted(map(len, first))[:2] == [5003 % 32, 32]
    again = plan_epoch(lengths, 32, seed=1, epoch=0)
    assert all((batch == other).all() for batch, other in zip(first, again, strict=True))
    for seed, epoch in ((1, 1), (2, 0)):
        other = plan_epoch(lengths, 32, seed=seed, epoch=epoch)
        assert not np.array_equal(np.concatenate(first), np.concatenate(other))


def test_evaluation_takes_everything_once_longest_first(lengths):
    batches = buckets.plan_in_order_of_length(lengths, 32)
    assert sorted(np.concatenate(batches)) == list(range(5003))
    assert lengths[batches[0]].min() >= lengths[batches[-1]].max()


def test_a_batch_is_padded_to_a_bucket_and_to_its_full_size():
    batch = buckets.make_batch([row(3, label=2, tags=[5, 6]), row(17, label=1, tags=[7])], 4,
                               (16, 24, 32, 40), pad_id=9)
    assert batch.ids.shape == batch.padding_mask.shape == batch.segment_ids.shape == (4, 24)
    assert batch.ids[0].tolist() == [1, 2, 3] + [9] * 21
    assert batch.ids[2].tolist() == [9] * 24
    assert batch.padding_mask.sum(axis=1).tolist() == [3, 17, 1, 1]  # Heads read a token.
    assert batch.segment_ids[0].tolist() == [0, 1, 1] + [0] * 21
    assert batch.present.tolist() == [True, True, False, False]
    assert batch.targets["label"].tolist() == [2, 1, 0, 0]
    assert batch.targets["tags"][:, :3].tolist() == [[5, 6, 0], [7, 0, 0], [0] * 3, [0] * 3]
    assert batch.ids.dtype == np.int32


@pytest.mark.parametrize(("counts", "parts"), [((1, 3), 3), ((5, 2), 8)])
def test_parts_are_padded_together_and_added_ones_have_a_token(counts, parts):
    rows = [buckets.Row(np.full([count, 6], 7, np.int32), np.ones([count, 6], np.int32),
                        {"vector": np.array([count, 0.5])},
                        padding_mask=np.arange(6) < [[5]] * count)
            for count in counts]
    batch = buckets.make_batch(rows, 3, (4, 8, 16), pad_id=9)
    assert batch.ids.shape == batch.padding_mask.shape == batch.segment_ids.shape == (3, parts, 8)
    for index, count in enumerate(counts):
        assert batch.ids[index, :count].tolist() == [[7] * 6 + [9] * 2] * count
        assert (batch.ids[index, count:] == 9).all()
        assert batch.padding_mask[index].sum(axis=1).tolist() == [5] * count + [1] * (parts - count)
    assert batch.targets["vector"].tolist() == [[counts[0], 0.5], [counts[1], 0.5], [0, 0]]


def test_buckets_are_the_best_of_all_choices(lengths):
    few = lengths[:200] // 4
    candidates = sorted({-(-int(length) // 4) * 4 for length in few})

    def padded(chosen):
        return sum(min(size for size in chosen if size >= length) for length in few)

    best = bucket_lengths(few, 128, max_buckets=4)
    assert best[-1] == 128 and len(best) == 4 and list(best) == sorted(set(best))
    assert padded(best) == min(
        padded((*chosen, 128)) for chosen in itertools.combinations(candidates, 3))


def test_the_last_bucket_is_the_longest_example():
    assert bucket_lengths([128, 128], 128) == (128,)
    assert bucket_lengths([3], 10) == (4, 10)
    assert len(bucket_lengths(range(1, 513), 512)) == 8


def test_a_bucket_that_saves_less_than_it_costs_is_left_out():
    lengths = [16] * 100 + [128] * 100  # A bucket of 16 saves 100 * 112 tokens.
    assert bucket_lengths(lengths, 128, bucket_cost=11_199) == (16, 128)
    assert bucket_lengths(lengths, 128, bucket_cost=11_201) == (128,)
    assert bucket_lengths([16] * 3, 128, bucket_cost=11_201) == (16, 128)  # 128 is not compiled.

"""Hashes and samples, against passages compared one by one in plain Python."""

import collections

import numpy as np
import pytest

from electra_tf.apps.inspection.repetition import DistinctSample, Hasher, KnownHashes

VOCAB, LENGTH = 50, 20


def some_rows(count, seed, alphabet=4):
    """Rows of few different ids, so that passages recur; of different lengths."""
    draw = np.random.default_rng(seed)
    ids = draw.integers(5, 5 + alphabet, size=(count, LENGTH))
    text = np.arange(LENGTH) < draw.integers(0, LENGTH + 1, size=(count, 1))
    text &= draw.random((count, LENGTH)) > 0.05  # A [SEP] here and there.
    return ids, text


def passages_of(ids, text, size):
    """(row, start, ids of the passage) of all passages."""
    kept = [row[mask].tolist() for row, mask in zip(ids, text, strict=True)]
    return [(number, start, tuple(row[start:start + size])) for number, row in enumerate(kept)
            for start in range(len(row) - size + 1)]


@pytest.mark.parametrize("size", [1, 3, 7, LENGTH])
def test_equal_passages_have_equal_hashes_wherever_they_stand(size):
    ids, text = some_rows(200, seed=size)
    hashes = Hasher(VOCAB, size)(ids, text)
    expected = passages_of(ids, text, size)
    assert list(zip(hashes.row, hashes.start, strict=True)) == [
        (row, start) for row, start, _ in expected]
    by_hash = collections.defaultdict(set)
    for value, (_, _, passage) in zip(hashes.passages, expected, strict=True):
        by_hash[int(value)].add(passage)
    assert len(by_hash) == len({passage for *_, passage in expected})
    assert all(len(passages) == 1 for passages in by_hash.values())
    # Hashes do not depend on the batch.
    halves = [Hasher(VOCAB, size)(ids[half], text[half]) for half in (slice(20), slice(20, 200))]
    np.testing.assert_array_equal(
        hashes.passages, np.concatenate([half.passages for half in halves]))


def test_rows_are_equal_if_their_text_is():
    ids = np.array([[2, 7, 8, 3, 9], [2, 7, 3, 8, 9], [2, 7, 8, 9, 9], [2, 9, 8, 7, 3]])
    text = (ids > 4) & [[True], [True], [False], [True]]
    first, second, nothing, third = Hasher(VOCAB, 2)(ids, text).rows
    assert first == second and len({first, nothing, third}) == 3


def test_leading_bits_are_fair():
    ids = np.stack([np.arange(2500) % VOCAB, np.arange(2500) // VOCAB], axis=1)
    hashes = Hasher(VOCAB, 2)(ids, np.ones_like(ids, bool)).passages
    counts = np.bincount((hashes >> np.uint64(60)).astype(int), minlength=16)
    assert np.unique(hashes).size == 2500
    assert abs(counts - 2500 / 16).max() < 5 * (2500 / 16) ** 0.5


@pytest.mark.parametrize("parts", [1, 7])
def test_few_hashes_are_all_counted(parts):
    values = np.random.default_rng(1).integers(1 << 64, size=500, dtype=np.uint64)
    found = np.repeat(values, 1 + np.arange(500) % 3)
    sample = DistinctSample(limit=1000)
    for part in np.array_split(np.arange(found.size), parts):
        sample.add(found[part], part)
    assert (sample.one_in, sample.total, sample.copies) == (1, found.size, found.size - 500)
    (where, count), *_ = sample.most_frequent(3)
    assert count == 3 and where == np.flatnonzero(found == values[2])[0]


def test_an_empty_sample_has_no_copies():
    sample = DistinctSample(limit=10)
    sample.add(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    assert (sample.one_in, sample.total, sample.copies, sample.most_frequent(1)) == (1, 0, 0, [])


def test_of_many_hashes_a_bounded_sample_has_the_same_share_of_copies():
    draw = np.random.default_rng(2)
    values = draw.integers(1 << 64, size=200_000, dtype=np.uint64)
    found = draw.permutation(np.concatenate([values, values[:50_000]]))
    sample = DistinctSample(limit=10_000)
    for part in np.array_split(np.arange(found.size), 40):
        sample.add(found[part], part)
        assert sample.total - sample.copies <= 10_000
    assert sample.one_in == 32
    # Copies are a fifth of all: 6250 +- 79 distinct ones in the sample, a quarter with a copy.
    share = sample.copies / sample.total
    assert share == pytest.approx(0.2, abs=5 * (0.25 * 0.75 / 6250) ** 0.5)
    for where, count in sample.most_frequent(50):
        assert count == 2 and where == np.flatnonzero(found == found[where])[0]


def test_known_hashes_that_others_have_are_seen():
    draw = np.random.default_rng(3)
    values = draw.integers(1 << 64, size=300, dtype=np.uint64)
    known, others = values[draw.integers(0, 200, size=400)], values[100:]
    hashes = KnownHashes(known)
    for part in np.array_split(others, 4):
        hashes.note(part)
    assert list(hashes.seen) == list(np.isin(known, others))
    assert 0.2 < hashes.seen.mean() < 0.8
    none = KnownHashes(known[:0])
    none.note(others)
    assert none.seen.size == 0

"""Text that is there more than once: whole examples, and passages wherever they stand.

A passage is a run of tokens of the text within one example, [SEP] left out, because a packing puts
it anywhere. All passages of a batch are hashed at once: with one random 64-bit value r(id) for each
piece and an odd base b, a passage that begins at token i has the hash

    sum of r(id[i + k]) b^k, k = 0 ... n - 1, modulo 2^64

(Karp and Rabin, 1987), a difference of two prefix sums divided by b^i.
"""

from typing import NamedTuple

import numpy as np

_BASE = 0x9E3779B97F4A7C15
_MIXER = 0xD6E8FEB86659FD93
_SEED = 1
_TABLE_BITS = 23
"""Of the held-out passages' first bits: 8 MB, which most others don't hit."""


class Hashes(NamedTuple):
    """Of a batch of B examples with P passages."""

    rows: np.ndarray
    """uint64 [B], of the whole text of each example."""
    passages: np.ndarray
    """uint64 [P]."""
    row: np.ndarray
    """int64 [P], the example that each passage is in."""
    start: np.ndarray
    """int64 [P], where it begins among the example's tokens of text."""


class Hasher:
    """Hashes of examples and of their passages.

    Args:
        vocab_size: V.
        passage: n, tokens of a passage.
    """

    def __init__(self, vocab_size: int, passage: int):
        self.passage = passage
        self._values = np.random.default_rng(_SEED).integers(
            1 << 64, size=vocab_size, dtype=np.uint64)
        self._powers = self._inverses = np.ones(1, np.uint64)

    def __call__(self, ids: np.ndarray, text: np.ndarray) -> Hashes:
        """Hashes int [B, L] ids where bool [B, L] `text` says that they are of the text."""
        flat, row = ids[text], np.repeat(np.arange(len(ids)), np.count_nonzero(text, axis=1))
        self._reserve(flat.size + 1)
        sums = np.zeros(flat.size + 1, np.uint64)
        np.cumsum(self._values[flat] * self._powers[:flat.size], out=sums[1:])
        ends = np.cumsum(np.count_nonzero(text, axis=1))
        begins = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        starts = np.flatnonzero(row[:max(0, flat.size - self.passage + 1)]
                                == row[self.passage - 1:])
        return Hashes(self._hash(sums, begins, ends),
                      self._hash(sums, starts, starts + self.passage), row[starts],
                      starts - begins[row[starts]])

    def _hash(self, sums: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
        hashes = (sums[stops] - sums[starts]) * self._inverses[starts]
        hashes ^= hashes >> np.uint64(32)  # The lowest bits of the sum are weak.
        hashes *= np.uint64(_MIXER)
        hashes ^= hashes >> np.uint64(32)
        return hashes

    def _reserve(self, size: int) -> None:
        if self._powers.size >= size:
            return
        self._powers, self._inverses = (_powers(base, size) for base in (
            _BASE, pow(_BASE, -1, 1 << 64)))


def _powers(base: int, count: int) -> np.ndarray:
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors)


class DistinctSample:
    """Counts equal hashes in bounded memory.

    All of them are kept while there are few. Past `limit` distinct ones those with a first bit of 1
    go, then those with a second, and so on: equal hashes stay or go together, so that shares in the
    sample are those of the whole (adaptive sampling; Wegman, in Flajolet, 1990).

    Args:
        limit: distinct hashes; each takes 24 bytes, and twice that while they are sorted.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._bits = 0
        self._new: list[tuple[np.ndarray, np.ndarray]] = []
        self._waiting = 0
        self._hashes = np.zeros(0, np.uint64)
        self._counts = self._where = np.zeros(0, np.int64)

    def add(self, hashes: np.ndarray, where: np.ndarray) -> None:
        """Takes uint64 [n] hashes, and for each a number, int64 [n], of where it was found."""
        kept = self._kept(hashes)
        self._new.append((hashes[kept], where[kept]))
        self._waiting += self._new[-1][0].size
        if self._waiting > self._limit:
            self._merge()

    @property
    def one_in(self) -> int:
        """Which part of all hashes the sample has: one in so many; 1 if it has all."""
        self._merge()
        return 1 << self._bits

    @property
    def total(self) -> int:
        """Number of hashes in the sample, equal ones included."""
        self._merge()
        return int(self._counts.sum())

    @property
    def copies(self) -> int:
        """Number of hashes in the sample that came before."""
        return self.total - self._hashes.size

    def most_frequent(self, count: int) -> list[tuple[int, int]]:
        """Returns (where it was found first, how often) of what is there most, twice at least."""
        self._merge()
        repeated = np.flatnonzero(self._counts > 1)
        order = repeated[np.lexsort((self._where[repeated], -self._counts[repeated]))][:count]
        return [(int(self._where[index]), int(self._counts[index])) for index in order]

    def _kept(self, hashes: np.ndarray) -> np.ndarray:
        if not self._bits:
            return np.ones(hashes.size, bool)
        return hashes >> np.uint64(64 - self._bits) == 0

    def _merge(self) -> None:
        if not self._new:
            return
        hashes = np.concatenate([self._hashes, *(new for new, _ in self._new)])
        where = np.concatenate([self._where, *(new for _, new in self._new)])
        counts = np.ones(hashes.size, np.int64)
        counts[:self._counts.size] = self._counts
        order = np.argsort(hashes)
        hashes = hashes[order]
        first = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        if first.size:
            self._hashes = hashes[first]
            self._where = np.minimum.reduceat(where[order], first)
            self._counts = np.add.reduceat(counts[order], first)
        self._new, self._waiting = [], 0
        while self._hashes.size > self._limit:
            self._bits += 1
            kept = self._kept(self._hashes)
            self._hashes, self._counts, self._where = (
                part[kept] for part in (self._hashes, self._counts, self._where))


class HeldOutText:
    """The held-out examples, or a sample of them, that training examples are compared with.

    Args:
        ids: int [B, L].
        text: bool [B, L], which tokens are of the text.
        hasher: theirs and of the training examples.
    """

    def __init__(self, ids: np.ndarray, text: np.ndarray, hasher: Hasher):
        self.ids, self.text = ids, text
        hashes = hasher(ids, text)
        self.row, self.start = hashes.row, hashes.start
        self._passages, self._passage = np.unique(hashes.passages, return_inverse=True)
        self._rows, self._row = np.unique(hashes.rows, return_inverse=True)
        self._seen = np.zeros(self._passages.size, bool)
        self._seen_rows = np.zeros(self._rows.size, bool)
        self._table = np.zeros(1 << _TABLE_BITS, bool)
        self._table[_first_bits(self._passages)] = True

    def compare(self, hashes: Hashes) -> None:
        """Notes what of the held-out text a batch of training examples has, too."""
        likely = hashes.passages[self._table[_first_bits(hashes.passages)]]
        _note(self._seen, self._passages, likely)
        _note(self._seen_rows, self._rows, hashes.rows)

    @property
    def seen_passages(self) -> np.ndarray:
        """Which held-out passages training has, bool [P]; `row` and `start` say where they are."""
        return self._seen[self._passage]

    @property
    def seen_rows(self) -> np.ndarray:
        """Which held-out examples training has as a whole, apart from [SEP]: bool [B]."""
        return self._seen_rows[self._row]


def _first_bits(hashes: np.ndarray) -> np.ndarray:
    return (hashes >> np.uint64(64 - _TABLE_BITS)).astype(np.int64)


def _note(seen: np.ndarray, known: np.ndarray, hashes: np.ndarray) -> None:
    """Sets `seen` [n] where the sorted `known` [n] are among `hashes`."""
    place = np.searchsorted(known, hashes)
    inside = place < known.size
    place, hashes = place[inside], hashes[inside]
    seen[place[known[place] == hashes]] = True

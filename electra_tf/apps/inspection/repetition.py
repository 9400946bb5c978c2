"""Text that is there more than once: whole examples, and passages wherever they stand.

A passage is a run of tokens of the text within one example, [SEP] left out, because packing puts
it anywhere. All passages of a batch are hashed at once: with one random 64-bit value r(id) for each
piece and an odd base b, a passage that begins at token i has the hash

    sum of r(id[i + k]) b^k, k = 0 ... n - 1, modulo 2^64

(Karp and Rabin, 1987), a difference of two prefix sums divided by b^i.
"""

import functools
from typing import NamedTuple

import numpy as np

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_MIXER = 0xD6E8FEB86659FD93
_SEED = 1
_TABLE_BITS = 23
"""Leading bits of known hashes that are kept in a table of 8 MB, which most other hashes miss."""


class Hashes(NamedTuple):
    """Hashes of a batch of B examples with P passages."""

    rows: np.ndarray
    """uint64 [B], of the whole text of each example."""
    passages: np.ndarray
    """uint64 [P]."""
    row: np.ndarray
    """int64 [P], the example that each passage is in."""
    start: np.ndarray
    """int64 [P], where the passage begins among the example's tokens of text."""


class Hasher:
    """Hashes examples and their passages.

    Args:
        vocab_size: V.
        passage: n, tokens of a passage.
    """

    def __init__(self, vocab_size: int, passage: int):
        self.passage = passage
        self._values = np.random.default_rng(_SEED).integers(
            1 << 64, size=vocab_size, dtype=np.uint64)

    def __call__(self, ids: np.ndarray, text: np.ndarray) -> Hashes:
        """Hashes int [B, L] ids where bool [B, L] `text` marks tokens of the text."""
        flat, lengths = ids[text], np.count_nonzero(text, axis=1)
        row = np.repeat(np.arange(len(ids)), lengths)
        sums = np.zeros(flat.size + 1, np.uint64)
        powers = _powers(_BASE, flat.size.bit_length())[:flat.size]
        np.cumsum(self._values[flat] * powers, out=sums[1:])
        ends = np.cumsum(lengths)
        begins = ends - lengths
        starts = np.flatnonzero(row[:max(0, flat.size - self.passage + 1)]
                                == row[self.passage - 1:])
        return Hashes(_hash(sums, begins, ends), _hash(sums, starts, starts + self.passage),
                      row[starts], starts - begins[row[starts]])


def _hash(sums: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    hashes = (sums[stops] - sums[starts]) * _powers(_INVERSE, sums.size.bit_length())[starts]
    hashes ^= hashes >> np.uint64(32)  # The lowest bits of the sum are weak.
    hashes *= np.uint64(_MIXER)
    return hashes ^ hashes >> np.uint64(32)


@functools.cache
def _powers(base: int, bits: int) -> np.ndarray:
    """Returns uint64 [2^bits]: 1, base, base^2, ... modulo 2^64."""
    factors = np.full(1 << bits, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors)


class DistinctSample:
    """Counts equal hashes in bounded memory.

    All hashes are kept while they are few. Past `limit` distinct ones, those with a leading bit of
    1 are dropped, then those with a second one, and so on. Equal hashes stay or go together, so
    that shares in the sample are those of the whole (adaptive sampling; Wegman, in Flajolet, 1990).

    Args:
        limit: distinct hashes; each takes 24 bytes, and twice that while they are sorted.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._halvings = 0
        self._new: list[tuple[np.ndarray, np.ndarray]] = []
        self._hashes = np.zeros(0, np.uint64)
        self._counts = self._where = np.zeros(0, np.int64)

    def add(self, hashes: np.ndarray, where: np.ndarray) -> None:
        """Adds uint64 [n] hashes, with a number for each, int64 [n], of where it was found."""
        kept = self._kept(hashes)
        self._new.append((hashes[kept], where[kept]))
        if sum(new.size for new, _ in self._new) > self._limit:
            self._merge()

    @property
    def one_in(self) -> int:
        """Denominator of the sampled part: one in so many distinct hashes; 1 for all."""
        self._merge()
        return 1 << self._halvings

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
        """Returns (first place, frequency) of the most frequent hashes that come twice or more."""
        self._merge()
        repeated = np.flatnonzero(self._counts > 1)
        order = repeated[np.lexsort((self._where[repeated], -self._counts[repeated]))][:count]
        return [(int(self._where[index]), int(self._counts[index])) for index in order]

    def _kept(self, hashes: np.ndarray) -> np.ndarray:
        return hashes <= np.uint64((1 << 64) - 1 >> self._halvings)

    def _merge(self) -> None:
        if not any(new.size for new, _ in self._new):
            return
        hashes = np.concatenate([self._hashes, *(new for new, _ in self._new)])
        where = np.concatenate([self._where, *(new for _, new in self._new)])
        counts = np.ones(hashes.size, np.int64)
        counts[:self._counts.size] = self._counts
        order = np.argsort(hashes)
        self._hashes, first = np.unique(hashes[order], return_index=True)
        self._where = np.minimum.reduceat(where[order], first)
        self._counts = np.add.reduceat(counts[order], first)
        self._new = []
        while self._hashes.size > self._limit:
            self._halvings += 1
            kept = self._kept(self._hashes)
            self._hashes, self._counts, self._where = (
                part[kept] for part in (self._hashes, self._counts, self._where))


class KnownHashes:
    """Hashes, uint64 [n], of which those that others have are noted."""

    def __init__(self, hashes: np.ndarray):
        self._distinct, self._place = np.unique(hashes, return_inverse=True)
        self._seen = np.zeros(self._distinct.size, bool)
        self._table = np.zeros(1 << _TABLE_BITS, bool)
        self._table[_leading_bits(self._distinct)] = True

    def note(self, others: np.ndarray) -> None:
        """Marks the known hashes that are among `others`, uint64 [m]."""
        likely = others[self._table[_leading_bits(others)]]
        place = np.searchsorted(self._distinct, likely).clip(max=self._distinct.size - 1)
        self._seen[place[self._distinct[place] == likely]] = True

    @property
    def seen(self) -> np.ndarray:
        """Which of the hashes were noted, bool [n]."""
        return self._seen[self._place]


def _leading_bits(hashes: np.ndarray) -> np.ndarray:
    return (hashes >> np.uint64(64 - _TABLE_BITS)).astype(np.int64)

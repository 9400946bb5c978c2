"""Hashes of words and n-grams, 64 bits, and near-duplicate documents.

Hashes are equal on every machine. The similarity of two documents is the Jaccard similarity of
their sets of word 5-grams, estimated from MinHash signatures (Broder, 1997). datasketch's
locality-sensitive hashing selects the pairs to compare.
"""

import functools
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_WORD = re.compile(r"[^\W_]+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplication modulo 2^64 is invertible."""
_MAX_WORDS = 1 << 20  # Different words in the cache, about 150 MB.
_DOCUMENT_N = 5  # n of a document's n-grams; a shorter text is one n-gram.
_AT_ONCE = 4096  # N-grams that are hashed together; they take 2 MB at 128 permutations.


def words_of(text: str) -> list[str]:
    """Returns the runs of letters and digits of a text, lower-cased.

    >>> words_of("Isn't it 1,000 Euros?")
    ['isn', 't', 'it', '1', '000', 'euros']
    """
    return _WORD.findall(text.lower())


def text_hash(text: str) -> int:
    """Returns a hash of a text in [0, 2^64)."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def word_hashes(words: Sequence[str]) -> np.ndarray:
    """Returns uint64 [W], a hash of each word."""
    hashes = np.fromiter(map(_word_hashes.__getitem__, words), np.uint64, len(words))
    if len(_word_hashes) > _MAX_WORDS:
        _word_hashes.clear()
    return hashes


def ngram_hashes(hashes: np.ndarray, n: int) -> np.ndarray:
    """Returns the hashes of n-grams, uint64 [max(0, W - n + 1)], from the words' [W]."""
    count = max(0, len(hashes) - n + 1)
    ngrams = np.full(count, n, np.uint64)
    for offset in range(n):
        ngrams = ngrams * _MULTIPLIER + hashes[offset:offset + count]
    return _mixed(ngrams)


def positions(values: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds uint64 [N] in sorted uint64 [M]; returns positions, int64 [N], and hits, bool [N]."""
    if not len(among):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    indices = np.searchsorted(among, values)
    indices[indices == len(among)] = 0
    return indices, among[indices] == values


def _mixed(values: np.ndarray) -> np.ndarray:
    """Mixes high bits into low ones, because multiplication carries only towards high bits."""
    values = (values ^ (values >> np.uint64(32))) * _MULTIPLIER
    return values ^ (values >> np.uint64(29))


class _WordHashes(dict):
    """A cache of word -> hash, which computes missing hashes."""

    def __missing__(self, word: str) -> int:
        self[word] = text_hash(word)
        return self[word]


_word_hashes = _WordHashes()


def signature(text: str, permutations: int) -> np.ndarray:
    """Returns uint32 [P], the MinHash signature of a text with at least one word."""
    hashes = word_hashes(words_of(text))
    ngrams = np.unique(ngram_hashes(hashes, min(_DOCUMENT_N, len(hashes)))) >> np.uint64(32)
    sketch = _empty_sketch(permutations).copy()
    for begin in range(0, len(ngrams), _AT_ONCE):
        sketch.update_batch(ngrams[begin:begin + _AT_ONCE].tolist())
    return sketch.hashvalues


def near_duplicates(signatures: Sequence[np.ndarray], threshold: float) -> np.ndarray:
    """Returns bool [D], True for documents that nearly equal an earlier one that is kept.

    `signatures` are uint32 [., P] each, D in all, in order; `threshold` is the least similarity.
    """
    signatures = [rows for rows in signatures if len(rows)]
    duplicates = np.zeros(sum(map(len, signatures)), bool)
    if not signatures:
        return duplicates
    from datasketch import MinHashLSH  # It imports SciPy, and few builds need it.

    # The index chooses the bands and rows with the fewest errors near the threshold.
    index, kept = MinHashLSH(threshold=threshold, num_perm=signatures[0].shape[1]), {}
    # Documents that share no band with another, nearly all, don't take kilobytes in the index.
    sharing = np.zeros(len(duplicates), bool)
    for begin in range(0, index.b * index.r, index.r):
        keys = np.zeros(len(sharing), np.uint64)
        for row in range(begin, begin + index.r):
            column = np.concatenate([unit[:, row] for unit in signatures])
            keys = _mixed(keys * _MULTIPLIER + column)
        order = np.argsort(keys)
        equal = keys[order[1:]] == keys[order[:-1]]
        sharing[order[1:][equal]] = sharing[order[:-1][equal]] = True
    ends = np.cumsum([len(rows) for rows in signatures])
    for number in np.flatnonzero(sharing):
        block = int(np.searchsorted(ends, number, side="right"))
        sketch = _empty_sketch(signatures[0].shape[1]).copy()
        sketch.hashvalues = signatures[block][number - ends[block]]
        if any(kept[other].jaccard(sketch) >= threshold for other in index.query(sketch)):
            duplicates[number] = True
        else:
            index.insert(number, sketch)
            kept[number] = sketch
    return duplicates


@functools.cache
def _empty_sketch(permutations: int) -> Any:
    from datasketch import MinHash

    return MinHash(num_perm=permutations, hashfunc=int)

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


_word_hash = functools.lru_cache(maxsize=1 << 19)(text_hash)  # The cache takes about 120 MB.


def word_hashes(words: Sequence[str]) -> np.ndarray:
    """Returns uint64 [W], a hash of each word."""
    return np.fromiter(map(_word_hash, words), np.uint64, len(words))


def ngram_hashes(hashes: np.ndarray, n: int) -> np.ndarray:
    """Returns the hashes of n-grams, uint64 [max(0, W - n + 1)], from the words' [W]."""
    # h = (...((n m + h_1) m + h_2) m ...) + h_n modulo 2^64, for all n-grams at once.
    count = max(0, len(hashes) - n + 1)
    ngrams = np.full(count, n, np.uint64)
    for offset in range(n):
        ngrams = ngrams * _MULTIPLIER + hashes[offset:offset + count]
    # Multiplication carries only towards high bits; mix them into the low ones.
    ngrams = (ngrams ^ (ngrams >> np.uint64(32))) * _MULTIPLIER
    return ngrams ^ (ngrams >> np.uint64(29))


def signature(text: str, permutations: int) -> np.ndarray:
    """Returns uint32 [P], the MinHash signature of a text."""
    # The 5-grams, or the single n-gram of a shorter text, as a set of 32 bits each.
    hashes = word_hashes(words_of(text))
    ngrams = np.unique(ngram_hashes(hashes, min(_DOCUMENT_N, len(hashes)) or 1)) >> np.uint64(32)
    sketch = _empty_sketch(permutations).copy()
    for begin in range(0, len(ngrams), _AT_ONCE):
        sketch.update_batch(ngrams[begin:begin + _AT_ONCE].tolist())
    return sketch.hashvalues


def near_duplicates(signatures: np.ndarray, threshold: float) -> np.ndarray:
    """Returns bool [D], True for documents that nearly equal an earlier one that is kept.

    `signatures` are uint32 [D, P], none if P is 0; `threshold` is the least similarity.
    """
    duplicates = np.zeros(len(signatures), bool)
    if not signatures.size:
        return duplicates
    from datasketch import MinHashLSH  # It imports SciPy, and few builds need it.

    # The index chooses the bands and rows with the fewest errors near the threshold.
    index = MinHashLSH(threshold=threshold, num_perm=signatures.shape[1])
    sketch = _empty_sketch(signatures.shape[1]).copy()
    for number, values in enumerate(signatures):
        sketch.hashvalues = values
        if sketch.is_empty():  # The document has no words.
            continue
        # The fraction of equal minima estimates the similarity with each candidate.
        duplicates[number] = any(np.mean(signatures[other] == values) >= threshold
                                 for other in index.query(sketch))
        if not duplicates[number]:
            index.insert(number, sketch)
    return duplicates


@functools.cache
def _empty_sketch(permutations: int) -> Any:
    from datasketch import MinHash

    return MinHash(num_perm=permutations, hashfunc=int)

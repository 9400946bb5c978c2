"""Documents that nearly equal an earlier one: MinHash and LSH (Broder, 1997), by datasketch.

Two documents are compared by the Jaccard similarity of their sets of word 5-grams, estimated from
signatures; locality-sensitive hashing finds which to compare.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from data_prep.cleaning.word_ngrams import ngram_hashes, row_hashes, word_hashes, words_of

WORDS = 5
"""n of the n-grams; a text of fewer words is a single one."""
_AT_ONCE = 4096
"""N-grams: at 128 permutations they take 2 MB."""


def signature(text: str, permutations: int) -> np.ndarray:
    """Returns uint32 [P], the MinHash signature of a text with at least one word."""
    hashes = word_hashes(words_of(text))
    ngrams = np.unique(ngram_hashes(hashes, min(WORDS, len(hashes)))) >> np.uint64(32)
    sketch = _empty_sketch(permutations).copy()
    for begin in range(0, len(ngrams), _AT_ONCE):
        sketch.update_batch(ngrams[begin:begin + _AT_ONCE].tolist())
    return sketch.hashvalues


def copies(signatures: Sequence[np.ndarray], threshold: float) -> np.ndarray:
    """Returns bool [D]: which documents nearly equal an earlier one that is kept.

    `signatures` are uint32 [., P] each, D in all, in order; `threshold` is the least similarity.
    """
    signatures = [rows for rows in signatures if len(rows)]
    found = np.zeros(sum(map(len, signatures)), bool)
    if not signatures:
        return found
    from datasketch import MinHashLSH  # Here: it imports SciPy, and few builds need it.

    # It chooses the bands and rows that err least about the threshold.
    index, kept = MinHashLSH(threshold=threshold, num_perm=signatures[0].shape[1]), {}
    ends = np.cumsum([len(rows) for rows in signatures])
    for number in np.flatnonzero(_sharing(signatures, index.b, index.r)):
        block = int(np.searchsorted(ends, number, side="right"))
        sketch = _sketch(signatures[block][number - ends[block]])
        if any(kept[other].jaccard(sketch) >= threshold for other in index.query(sketch)):
            found[number] = True
        else:
            index.insert(number, sketch)
            kept[number] = sketch
    return found


def _sharing(signatures: Sequence[np.ndarray], bands: int, rows: int) -> np.ndarray:
    """Returns bool [D]: which documents share a band of their signature with another.

    The others, nearly all, need no entry in the index, which takes kilobytes for each.
    """
    sharing = np.zeros(sum(map(len, signatures)), bool)
    for begin in range(0, bands * rows, rows):
        keys = np.concatenate([row_hashes(one[:, begin:begin + rows]) for one in signatures])
        order = np.argsort(keys)
        equal = keys[order[1:]] == keys[order[:-1]]
        sharing[order[1:][equal]] = sharing[order[:-1][equal]] = True
    return sharing


def _sketch(values: np.ndarray) -> Any:
    sketch = _empty_sketch(len(values)).copy()
    sketch.hashvalues = values
    return sketch


@functools.cache
def _empty_sketch(permutations: int) -> Any:
    from datasketch import MinHash

    return MinHash(num_perm=permutations, hashfunc=int)

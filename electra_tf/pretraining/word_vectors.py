"""Word vectors from counts of neighbouring tokens, with which the networks can begin.

They are left singular vectors of positive pointwise mutual information between tokens and their
neighbours (Bullinaria and Levy, 2012). The exponents, 3/4 of the neighbours' probabilities and 1/2
of the singular values, are those of Levy, Goldberg and Dagan (TACL 2015).
"""

import io
import time

import numpy as np
from scipy import sparse

from electra_tf.core.atomic_file import write_atomically
from electra_tf.core.storage import Path
from electra_tf.data.records import Records
from electra_tf.data.shards import first_examples
from electra_tf.modeling.masking import SpecialTokens, maskable

COUNTED_TOKENS = 1 << 23  # Tokens whose neighbours are counted.
MAX_SIZE = 256  # Most directions, so that wide networks don't wait for minutes.
_FURTHER = range(3, 8)  # Distances of neighbours that are counted together.


def write(records: Records, special: SpecialTokens, size: int, path: Path) -> None:
    """Writes `cooccurrence_vectors` of the records as a NumPy file, float16 [V, `size` or fewer].

    Prints a line about it, as it takes seconds.
    """
    # Examples end to end, with so much padding between them that they are no neighbours.
    begin = time.monotonic()
    padding = np.full(_FURTHER.stop - 1, special.pad)
    ids = np.concatenate([part for example in first_examples(
        records, COUNTED_TOKENS // records.max_seq_length) for part in (example, padding)])
    counted = np.asarray(maskable(ids, np.ones(ids.size, bool), special))
    vectors = cooccurrence_vectors(
        np.where(counted, ids, -1), records.vocab_size, min(size, MAX_SIZE))
    content = io.BytesIO()
    np.save(content, vectors.astype(np.float16))
    write_atomically(path, content.getvalue())
    print(f"words    begin with vectors from the neighbours of {np.sum(counted):,} tokens "
          f"({time.monotonic() - begin:.0f} s)", flush=True)


def cooccurrence_vectors(ids: np.ndarray, vocab_size: int, size: int) -> np.ndarray:
    """Returns unit vectors of all tokens, float [V, `size` or fewer], the largest direction first.

    `ids`, int [T], is text, with -1 where a position does not count. Tokens that occur with no
    other more often than by chance have the vector 0.
    """
    from sklearn.utils.extmath import randomized_svd  # Its import takes a second.

    # How often a token (row) has another one (column) at a distance behind it, [V, V].
    def pairs(distance: int) -> sparse.csr_matrix:
        token, neighbour = ids[:-distance], ids[distance:]
        counted = (token >= 0) & (neighbour >= 0)
        return sparse.coo_matrix(
            (np.ones(np.sum(counted), np.float32), (token[counted], neighbour[counted])),
            shape=[vocab_size, vocab_size]).tocsr()

    # Near neighbours count by distance and side, further ones together.
    first, second, further = pairs(1), pairs(2), sum(map(pairs, _FURTHER))
    information = sparse.hstack([_positive_information(counts) for counts in (
        first, first.T, second, second.T, further + further.T)]).tocsr()
    size = min(size, vocab_size)
    directions, values, _ = randomized_svd(information, size, n_iter=3, random_state=0)
    vectors = directions * np.sqrt(values)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    known = (information.getnnz(axis=1) > 0)[:, np.newaxis] & (lengths > 0)
    return np.where(known, vectors / np.where(known, lengths, 1.0), 0.0)


def _positive_information(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Maps counts [V, V] to log(P(neighbour | token) / P(neighbour)), or 0 where it is negative."""
    total, share = (np.asarray(counts.sum(axis)).ravel() for axis in (1, 0))
    share = share**0.75
    share /= share.sum() or 1.0
    pairs = counts.tocoo()
    information = np.log(pairs.data / (total[pairs.row] * share[pairs.col]))
    above = information > 0
    return sparse.csr_matrix(
        (information[above].astype(np.float32), (pairs.row[above], pairs.col[above])),
        shape=counts.shape)

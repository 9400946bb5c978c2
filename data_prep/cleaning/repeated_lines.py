"""Lines that stood earlier in the text, by 64-bit hashes.

Of 10^8 different lines two have the same hash with a probability of 0.03 %.
"""

from collections.abc import Iterator, Sequence

import numpy as np


def later_ones(hashes: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yields for each array bool [N]: which hashes stood earlier, in it or before it.

    Args:
        hashes: uint64 [N] each, in the text's order. What is needed besides is one sorted copy.
    """
    repeated = _repeated(hashes)
    seen = np.zeros(len(repeated), bool)
    for here in hashes:
        later = np.zeros(len(here), bool)
        numbers, is_repeated = positions(here, repeated)
        places = np.flatnonzero(is_repeated)
        values, first = np.unique(numbers[places], return_index=True)
        later[places] = True
        later[places[first[~seen[values]]]] = False
        seen[values] = True
        yield later


def positions(values: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns where values stand in a sorted array, and whether they do.

    Args:
        values: uint64 [N].
        among: uint64 [M], ascending.

    Returns:
        Positions int64 [N], of meaning where the second, bool [N], is True.
    """
    if not len(among):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    found = np.searchsorted(among, values)
    found[found == len(among)] = 0
    return found, among[found] == values


def _repeated(hashes: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the hashes that occur more than once, ascending."""
    whole = np.concatenate(hashes) if len(hashes) else np.zeros(0, np.uint64)
    whole.sort()
    return np.unique(whole[1:][whole[1:] == whole[:-1]])

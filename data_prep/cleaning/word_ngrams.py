"""Words and n-grams of words as 64-bit hashes, the same on every machine."""

import functools
import hashlib
import re
from collections.abc import Sequence

import numpy as np

_WORD = re.compile(r"[^\W_]+")
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplication modulo 2^64 loses nothing."""
_MOST_WORDS = 1 << 20
"""Different words remembered, about 150 MB."""


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
    known = _known_words()
    hashes = np.fromiter(map(known.__getitem__, words), np.uint64, len(words))
    if len(known) > _MOST_WORDS:
        known.clear()
    return hashes


def ngram_hashes(hashes: np.ndarray, n: int) -> np.ndarray:
    """Returns uint64 [max(0, W - n + 1)], a hash of every n-gram by its first word, from words'
    [W].
    """
    count = max(0, len(hashes) - n + 1)
    found = np.full(count, n, np.uint64)
    for place in range(n if count else 0):
        found = found * _MULTIPLIER + hashes[place:place + count]
    return _mixed(found)


def row_hashes(rows: np.ndarray) -> np.ndarray:
    """Returns uint64 [R], a hash of each row of numbers, uint32 [R, C]."""
    found = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        found = _mixed(found * _MULTIPLIER + column)
    return found


def positions(values: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions int64 [N] of uint64 [N] in a sorted uint64 [M], and bool [N]: found."""
    if not len(among):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    found = np.searchsorted(among, values)
    found[found == len(among)] = 0
    return found, among[found] == values


def _mixed(values: np.ndarray) -> np.ndarray:
    """Spreads what differs in high bits over all bits: multiplication carries upwards only."""
    values = (values ^ (values >> np.uint64(32))) * _MULTIPLIER
    return values ^ (values >> np.uint64(29))


class _Known(dict):
    """Word -> hash, made when it is first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = found = text_hash(word)
        return found


@functools.cache
def _known_words() -> _Known:
    return _Known()

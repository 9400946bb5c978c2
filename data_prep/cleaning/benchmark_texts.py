"""The texts of benchmarks' test files, and which lines have one in common with them.

A line is contaminated if it holds n consecutive words of a test text, or all words of one that has
fewer, as in Brown et al. (2020), "Language Models are Few-Shot Learners", appendix C, with n = 13.
There whole stretches of documents around such words go; here it is the line.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import numpy as np

from data_prep.cleaning import arrays
from data_prep.cleaning.word_ngrams import ngram_hashes, positions, word_hashes, words_of
from electra_tf.platform.storage import Path

_BEGINNING = np.uint64(42)
"""Bits of a hash behind its first 22."""


@dataclasses.dataclass(frozen=True)
class BenchmarkTexts:
    """What test files hold, as hashes of n-grams of words."""

    lengths: tuple[int, ...]
    """The n that there are, ascending."""
    ngrams: np.ndarray
    """uint64 [G], ascending."""
    texts: int = 0
    """How many there were that are looked for."""
    files: int = 0

    @property
    def sha256(self) -> str:
        """A hexadecimal digest of the n-grams."""
        return hashlib.sha256(np.ascontiguousarray(self.ngrams).astype("<u8").tobytes()
                              ).hexdigest()

    def found_in(self, lines: Sequence[str]) -> np.ndarray:
        """Returns bool [L]: which lines hold an n-gram of a test text."""
        words = [words_of(line) for line in lines]
        owners = np.repeat(np.arange(len(lines)), [len(one) for one in words])
        hashes = word_hashes([word for one in words for word in one])
        found = np.zeros(len(lines), bool)
        for length in self.lengths:
            ngrams = ngram_hashes(hashes, length)
            likely = np.flatnonzero(self._beginnings[ngrams >> _BEGINNING])
            first = likely[positions(ngrams[likely], self.ngrams)[1]]
            whole = owners[first] == owners[first + length - 1]
            found[owners[first[whole]]] = True
        return found

    @functools.cached_property
    def _beginnings(self) -> np.ndarray:
        """The first bits of the n-grams, bool [2^22]: with them the search takes half as long."""
        found = np.zeros(1 << 64 - int(_BEGINNING), bool)
        found[self.ngrams >> _BEGINNING] = True
        return found

    def save(self, path: Path) -> None:
        """Writes them atomically; raises UserError if it can't."""
        arrays.save(path, {"lengths": np.array(self.lengths), "ngrams": self.ngrams})

    @classmethod
    def load(cls, path: Path) -> "BenchmarkTexts":
        """Returns what `save` wrote; raises UserError if the file can't be read."""
        with arrays.opened(path) as found:
            return cls(tuple(found["lengths"].tolist()), found["ngrams"])

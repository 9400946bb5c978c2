"""Which words a vocabulary doesn't know: those that became [UNK], by their script."""

import collections
import functools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.text.normalization import Normalization
from electra_tf.text.tokenizer import WordSplitter
from electra_tf.text.vocabulary import Vocabulary
from electra_tf.text.word_scripts import scripts_of


class UnknownScripts:
    """Counts the words that became [UNK] by their script; only texts with such are split again.

    Args:
        vocabulary: of the pieces.
        normalization: of the tokenizer that made them.
    """

    def __init__(self, vocabulary: Vocabulary, normalization: Normalization):
        self.counts: collections.Counter[str] = collections.Counter()
        """Script -> unknown words."""
        self._vocabulary = vocabulary
        self._split = _split_function(normalization)

    def add(self, texts: Sequence[str], ids: np.ndarray, ends: np.ndarray) -> None:
        """Counts the unknown words of N texts.

        Args:
            texts: N of them.
            ids: int [T], their pieces, one text after another.
            ends: int [N]: one past each text's last piece.
        """
        unknown = np.flatnonzero(ids == self._vocabulary.unk_id)
        if not unknown.size:
            return
        rows = np.searchsorted(ends, unknown, side="right")
        having = np.unique(rows)
        words, splits = self._split(tf.constant([texts[row] for row in having]))
        # A word has one piece that continues none, or is one [UNK].
        before = np.concatenate([[0], np.cumsum(~self._vocabulary.continues[ids])])
        number = before[unknown] - before[np.concatenate([[0], ends])[rows]]
        places = splits.numpy()[np.searchsorted(having, rows)] + number
        self.counts.update(scripts_of([word.decode() for word in words.numpy()[places]]))


@functools.lru_cache(maxsize=2)
def _split_function(normalization: Normalization
                    ) -> Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Returns string [N] -> the words of all texts, and where each text's begin, [N + 1]."""
    splitter = WordSplitter(normalization)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def split(texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        words = splitter.words(texts)
        return words.flat_values, words.row_splits

    return split

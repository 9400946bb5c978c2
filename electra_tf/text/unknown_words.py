"""Which words a vocabulary doesn't know: those that became [UNK], by their writing system.

Writing systems are Unicode's scripts: Latin, Cyrillic, Han, ... (Unicode Standard Annex 24).
"""

import collections
import functools
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.text.normalization import Normalization
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.tokenizer import WordSplitter

DIGITS, SIGNS, OTHER = "digits", "signs", "other scripts"
"""Groups of words without letters, and of words whose letters `_NAMES` lacks."""
_NAMES = dict(enumerate(
    ("Arabic", "Armenian", "Bengali", "Bopomofo", "Cherokee", "Coptic", "Cyrillic", "Deseret",
     "Devanagari", "Ethiopic", "Georgian", "Gothic", "Greek", "Gujarati", "Gurmukhi", "Han",
     "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao", "Latin", "Malayalam",
     "Mongolian", "Myanmar", "Ogham", "Old Italic", "Oriya", "Runic", "Sinhala", "Syriac", "Tamil",
     "Telugu", "Thaana", "Thai", "Tibetan"), start=2))
"""Name by ICU's number of the script; 0 and 1 are what scripts share, such as digits."""


def scripts_of(texts: Sequence[str]) -> list[str]:
    """Returns the script of each text, which is that of its first character that has one.

    Letters have one, and the digits that one script alone uses.

    Args:
        texts: words or pieces.

    Returns:
        Unicode's name of the script, or one of `DIGITS`, `SIGNS` (punctuation and symbols) and
        `OTHER` (a script of which little is written today).

    >>> scripts_of(["##ing", "3rd", "1,5", "—", "дом", "漢字"])
    ['Latin', 'Latin', 'digits', 'signs', 'Cyrillic', 'Han']
    """
    if not texts:
        return []
    points = tf.strings.unicode_decode(tf.constant(list(texts)), "UTF-8")
    numbers = tf.strings.unicode_script(points.flat_values).numpy()
    lettered = np.append(np.flatnonzero(numbers > 1), numbers.size)
    splits = points.row_splits.numpy()
    first = lettered[np.searchsorted(lettered, splits[:-1])]
    return [_NAMES.get(int(numbers[place]), OTHER) if place < end else _without_letters(text)
            for text, place, end in zip(texts, first, splits[1:], strict=True)]


def _without_letters(text: str) -> str:
    return DIGITS if any(unicodedata.category(char) == "Nd" for char in text) else SIGNS


class UnknownScripts:
    """Counts the words that became [UNK] by their script; only texts with such are split again.

    Args:
        text: settings of the tokenizer that made the pieces.
    """

    def __init__(self, text: TextSettings):
        self.counts: collections.Counter[str] = collections.Counter()
        """Script -> unknown words."""
        self._vocabulary = text.vocabulary
        self._split = _split_function(text.normalization)

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

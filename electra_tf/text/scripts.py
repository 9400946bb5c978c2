"""Scripts of words (Unicode's UAX 24), and of those that the vocabulary lacks."""

import collections
import unicodedata
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.text.normalization import TextSettings
from electra_tf.text.tokenizer import WordSplitter

_DIGITS, _SIGNS, _OTHER = "digits", "signs", "other scripts"
"""Groups of words without letters, and of words whose letters `_NAMES` lacks."""
_NAMES = dict(enumerate(
    ("Arabic", "Armenian", "Bengali", "Bopomofo", "Cherokee", "Coptic", "Cyrillic", "Deseret",
     "Devanagari", "Ethiopic", "Georgian", "Gothic", "Greek", "Gujarati", "Gurmukhi", "Han",
     "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao", "Latin", "Malayalam",
     "Mongolian", "Myanmar", "Ogham", "Old Italic", "Oriya", "Runic", "Sinhala", "Syriac", "Tamil",
     "Telugu", "Thaana", "Thai", "Tibetan"), start=2))
"""Name by ICU's number of the script; 0 and 1 are what scripts share, such as digits."""


def word_scripts(texts: Sequence[str]) -> list[str]:
    """Returns the script of each word or piece, which is that of its first letter.

    Digits that a single script uses count as letters. Words without letters are "digits" or
    "signs"; scripts that are rare today are "other scripts".

    >>> word_scripts(["##ing", "3rd", "1,5", "—", "дом", "漢字"])
    ['Latin', 'Latin', 'digits', 'signs', 'Cyrillic', 'Han']
    """
    points = tf.strings.unicode_decode(tf.constant(list(texts), tf.string), "UTF-8")
    codes = points.with_flat_values(tf.strings.unicode_script(points.flat_values)).to_list()
    return [next((_NAMES.get(code, _OTHER) for code in row if code > 1), None)
            or (_DIGITS if any(unicodedata.category(char) == "Nd" for char in text) else _SIGNS)
            for text, row in zip(texts, codes, strict=True)]


class UnknownScripts:
    """A counter of words that became [UNK] by their script; only their texts are split again."""

    def __init__(self, text: TextSettings):
        self.counts: collections.Counter[str] = collections.Counter()
        self._vocabulary, self._words = text.vocabulary, WordSplitter(text.normalization).words

    def add(self, texts: Sequence[str], ids: np.ndarray, ends: np.ndarray) -> None:
        """Counts the unknown words of N texts.

        `ids`, int [T], are their pieces, one text after another; `ends`, int [N], is one past each
        text's last piece.
        """
        unknown = np.flatnonzero(ids == self._vocabulary.unk_id)
        if not unknown.size:
            return
        # The text of every unknown word; these texts alone are split into words again.
        rows = np.searchsorted(ends, unknown, side="right")
        affected = np.unique(rows)
        words = self._words([texts[row] for row in affected])

        # Every word has exactly one piece that does not continue a word; [UNK] is one.
        words_before = np.concatenate([[0], np.cumsum(~self._vocabulary.continues[ids])])
        index_in_row = words_before[unknown] - words_before[np.concatenate([[0], ends])[rows]]
        indices = words.row_splits.numpy()[np.searchsorted(affected, rows)] + index_in_row
        self.counts.update(word_scripts([
            word.decode() for word in words.flat_values.numpy()[indices]]))

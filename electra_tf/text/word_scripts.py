"""Which writing system text is of: Latin, Cyrillic, Han, ... (Unicode Standard Annex 24)."""

import unicodedata
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

DIGITS, SIGNS, OTHER = "digits", "signs", "other scripts"
"""Of text without letters, and of letters that `_NAMES` hasn't."""
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

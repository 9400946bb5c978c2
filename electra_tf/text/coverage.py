"""What a person should know of a text and the tokenizer: unknown words, letters that it changes."""

from collections.abc import Iterable

import numpy as np

from electra_tf.text import scripts
from electra_tf.text.vocabulary import Vocabulary

MOST_UNKNOWN = 0.05
"""Part of the words that may become [UNK] before it is worth a warning."""
MOST_CHANGED = 0.05
"""Part of the characters that may be letters that change where accents are stripped, which a user
of an uncased model of German or French wants."""


def count_words(ids: np.ndarray, vocabulary: Vocabulary) -> tuple[int, int]:
    """Returns how many words pieces are of, and how many of those are unknown.

    A word begins with a piece that continues none; an unknown word is a single [UNK].

    Args:
        ids: int [n], pieces without special tokens.
        vocabulary: theirs.
    """
    continuing = np.count_nonzero(vocabulary.continues[ids])
    return int(ids.size - continuing), int(np.count_nonzero(ids == vocabulary.unk_id))


def count_changed(texts: Iterable[str]) -> int:
    """Returns how many characters of texts are letters that stripping accents changes."""
    others = (text for text in texts if not text.isascii())
    return scripts.count_changed(scripts.count_characters(others))


def unknown_warning(unknown: int, words: int) -> str:
    """Returns what to say of a text with so many unknown words; "" if they are few."""
    if unknown <= MOST_UNKNOWN * words:
        return ""
    return (f"{unknown / words:.1%} of the words became [UNK], so nothing is learned of them: the "
            "vocabulary is of other text or another language. Learn one from this text with "
            "`python -m data_prep.build_vocab`, and pre-train with it.")


def changed_warning(changed: int, whole: int) -> str:
    """Returns what to say where accents are stripped and so many characters change; or ""."""
    if changed <= MOST_CHANGED * whole:
        return ""
    return (f"{changed / whole:.0%} of the characters change where accents are stripped: vowel "
            "signs and voicing marks vanish, Korean syllables fall apart. Learn a vocabulary with "
            "`python -m data_prep.build_vocab --normalization=nfc`, and pre-train with it.")

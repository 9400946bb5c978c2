"""What a person should know of a text and the tokenizer: words it doesn't know, Korean cut up."""

from collections.abc import Iterable

import numpy as np

from electra_tf.text.vocabulary import Vocabulary

MOST_UNKNOWN = 0.05
"""Part of the words that may become [UNK] before it is worth a warning."""
MOST_HANGUL = 0.05
"""Part of the characters that may be Korean where accents are stripped."""
_FIRST_SYLLABLE, _LAST_SYLLABLE = 0xAC00, 0xD7A3


def count_words(ids: np.ndarray, vocabulary: Vocabulary) -> tuple[int, int]:
    """Returns how many words pieces are of, and how many of those are unknown.

    A word begins with a piece that continues none; an unknown word is a single [UNK].

    Args:
        ids: int [n], pieces without special tokens.
        vocabulary: theirs.
    """
    continuing = np.count_nonzero(vocabulary.continues[ids])
    return int(ids.size - continuing), int(np.count_nonzero(ids == vocabulary.unk_id))


def count_hangul(texts: Iterable[str]) -> int:
    """Returns how many characters of texts are Korean syllables."""
    others = "".join(text for text in texts if not text.isascii())
    codes = np.frombuffer(others.encode("utf-32-le", "surrogatepass"), np.uint32)
    return int(np.count_nonzero((_FIRST_SYLLABLE <= codes) & (codes <= _LAST_SYLLABLE)))


def unknown_warning(unknown: int, words: int) -> str:
    """Returns what to say of a text with so many unknown words; "" if they are few."""
    if unknown <= MOST_UNKNOWN * words:
        return ""
    return (f"{unknown / words:.1%} of the words became [UNK], so nothing is learned of them: the "
            "vocabulary is of other text or another language. Learn one from this text with "
            "`python -m data_prep.build_vocab`, and pre-train with it.")


def hangul_warning(hangul: int, whole: int, unit: str = "characters") -> str:
    """Returns what to say where accents are stripped from a text with so much Korean; or ""."""
    if hangul <= MOST_HANGUL * whole:
        return ""
    return (f"{hangul / whole:.0%} of the {unit} are Korean, whose syllables are taken "
            "apart where accents are stripped. Give --nostrip_accents to build_vocab and "
            "build_pretraining_data.")

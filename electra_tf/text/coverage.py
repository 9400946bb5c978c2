"""Measures of a tokenizer on a text: unknown words, and letters that normalization changes.

BERT's uncased normalization decomposes characters (NFD) and drops non-spacing marks (Mn): Hangul
syllables become single letters, Indic and Thai vowel signs are lost, umlauts become other letters.
`propose_normalization` decides by the share of these letters.
"""

import collections
import functools
import unicodedata
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from electra_tf.text.normalization import NFC, UNCASED, Normalization
from electra_tf.text.vocabulary import MAX_WORD_CHARACTERS, Vocabulary

_MAX_CHANGED_LETTERS = 0.01
"""Largest fraction of letters that stripping accents may change. English text has 0.04 %, Russian
1.5, German 1.7, French 3, Turkish and Japanese some 7, Hindi and Thai 20, Korean 100."""


def count_words(ids: np.ndarray, vocabulary: Vocabulary) -> tuple[int, int]:
    """Returns the numbers of words and of unknown words in ids, int [n], of ordinary tokens."""
    continuing = np.count_nonzero(vocabulary.continues[ids])
    return int(ids.size - continuing), int(np.count_nonzero(ids == vocabulary.unk_id))


def count_changed(texts: Iterable[str]) -> int:
    """Returns how many characters of texts are letters that stripping accents changes."""
    changing = "".join(text for text in texts if not text.isascii())
    return _count(_is_changed, count_characters(changing))


def coverage_warnings(words: int, unknown: int, characters: int = 0, changed: int = 0) -> list[str]:
    """Returns warnings of many unknown words, and of many characters that normalization changes."""
    lines = []
    if unknown > 0.05 * words:
        lines.append(
            f"{unknown / words:.1%} of the words became [UNK]: the vocabulary lacks some of their "
            f"characters, or they have more than {MAX_WORD_CHARACTERS} characters. For missing "
            "characters learn a vocabulary from this text with `python -m data_prep.build_vocab`, "
            "and pre-train with it.")
    if changed > 0.05 * characters:
        lines.append(
            f"{changed / characters:.0%} of the characters change where accents are stripped: "
            "vowel signs and voicing marks are lost, Korean syllables are split. Learn a "
            "vocabulary with `python -m data_prep.build_vocab --normalization=nfc`, and pre-train "
            "with it.")
    return lines


def count_characters(text: str, weights: np.ndarray | None = None) -> collections.Counter[str]:
    """Returns the frequency of each character in a text, or the sums of their weights."""
    # UTF-32 is an array of code points, whose values `bincount` counts.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    totals = np.bincount(codes, weights)
    return collections.Counter({chr(code): int(totals[code]) for code in np.flatnonzero(totals)})


def count_characters_of_words(counts: Mapping[bytes, int]) -> collections.Counter[str]:
    """Returns the frequency of each character in words, UTF-8, from the words' frequencies."""
    words = [word.decode() for word in counts]
    weights = np.repeat(np.fromiter(counts.values(), np.int64, len(words)),
                        np.fromiter(map(len, words), np.int64, len(words)))
    return count_characters("".join(words), weights)


def propose_normalization(characters: Mapping[str, int]) -> tuple[Normalization, str]:
    """Returns the normalization that suits a text with these frequencies, and the reason.

    >>> propose_normalization(count_characters("The café says: " + "come in " * 40))[0] == UNCASED
    True
    >>> propose_normalization(count_characters("Schöne Grüße"))[0] == NFC
    True
    """
    share = _count(_is_changed, characters) / max(1, _count(_is_letter, characters))
    return (NFC if share > _MAX_CHANGED_LETTERS else UNCASED,
            f"stripping accents would change {share:.2%} of the letters")


def _count(condition: Callable[[str], bool], characters: Mapping[str, int]) -> int:
    return sum(count for character, count in characters.items() if condition(character))


@functools.cache
def _is_letter(character: str) -> bool:
    """Returns whether a character is a letter, or a mark that belongs to one."""
    return (unicodedata.category(character)[0] in "LM"
            and not 0xFE00 <= ord(character) < 0xFE10)  # These select the form of a symbol.


@functools.cache
def _is_changed(character: str) -> bool:
    if character.isascii() or not _is_letter(character):
        return False
    # What `tokenizer.WordSplitter` does: NFD without non-spacing marks.
    decomposed = unicodedata.normalize("NFD", character)
    return character != "".join(c for c in decomposed if unicodedata.category(c) != "Mn")

"""What a person should know of a text and the tokenizer: unknown words, letters that it changes.

BERT's uncased normalization decomposes characters (NFD) and drops non-spacing marks (Mn). English
loses almost nothing by it. Other texts lose letters: Hangul syllables fall apart, Indic and Thai
vowel signs vanish, Japanese loses its voicing marks, German umlauts and Turkish letters turn into
others. What decides is therefore not how many letters aren't ASCII but how many would change.
"""

import collections
import functools
import unicodedata
from collections.abc import Iterable, Mapping

import numpy as np

from electra_tf.text.normalization import NFC, UNCASED, Normalization
from electra_tf.text.vocabulary import Vocabulary

MOST_UNKNOWN = 0.05
"""Part of the words that may become [UNK] before it is worth a warning."""
MOST_CHANGED = 0.05
"""Part of the characters that may be letters that change where accents are stripped, which a user
of an uncased model of German or French wants."""
_MOST_CHANGED_LETTERS = 0.01
"""Part of the letters that may change where accents are stripped. English Wikipedia and books have
0.04 %, German 1.7, Russian 1.5, French 3, Turkish and Japanese some 7, Hindi and Thai 20, Korean
100."""
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
"""Marks that say how a symbol looks."""
_MOST_SCRIPTS = 3
"""Scripts named in a warning, at most."""
_LEAST_SHARE = 0.001
"""Smallest fraction of the letters for a script to be named."""


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
    return _count_changed(count_characters(others))


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


def count_characters(texts: Iterable[str]) -> collections.Counter[str]:
    """Returns how often each character stands in texts."""
    return _counted("".join(texts))


def count_characters_of_words(counts: Mapping[bytes, int]) -> collections.Counter[str]:
    """Returns how often each character stands in words (UTF-8) that occur so often."""
    words = [word.decode() for word in counts]
    weights = np.repeat(np.fromiter(counts.values(), np.int64, len(words)),
                        np.fromiter(map(len, words), np.int64, len(words)))
    return _counted("".join(words), weights)


def _counted(text: str, weights: np.ndarray | None = None) -> collections.Counter[str]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    totals = np.bincount(codes, weights)
    return collections.Counter({chr(code): int(totals[code]) for code in np.flatnonzero(totals)})


def _count_letters(characters: Mapping[str, int]) -> int:
    """Returns how many of the characters are letters or the marks that belong to them."""
    return sum(count for character, count in characters.items() if _is_letter(character))


def _count_changed(characters: Mapping[str, int]) -> int:
    """Returns how many letters and marks stripping accents would change or drop."""
    return sum(count for character, count in characters.items() if _changes(character))


def proposed(characters: Mapping[str, int]) -> Normalization:
    """Returns the normalization that suits a text with so many of each character.

    >>> proposed(count_characters(["The owner of the café says: " + "come in " * 40]))
    Normalization(lower_case=True, strip_accents=True, nfc=False)
    >>> proposed(count_characters(["Schöne Grüße"])).nfc
    True
    """
    too_many = (_count_changed(characters)
                > _MOST_CHANGED_LETTERS * _count_letters(characters))
    return NFC if too_many else UNCASED


def described(characters: Mapping[str, int]) -> str:
    """Returns what decided `proposed`, in words."""
    letters = _count_letters(characters)
    if not letters:
        return "no letters"
    by_script: collections.Counter[str] = collections.Counter()
    changed: collections.Counter[str] = collections.Counter()
    for character, count in sorted(characters.items()):
        if _is_letter(character):
            by_script[_script(character)] += count
            changed[_script(character)] += count * _changes(character)
    parts = [f"{script} {count / letters:.1%}" for script, count in
             by_script.most_common(_MOST_SCRIPTS) if count >= _LEAST_SHARE * letters]
    most = [script for script, count in changed.most_common(1) if count]
    mostly = f", mostly {most[0]}" if most else ""
    return (f"{', '.join(parts)} of the letters; stripping accents would change "
            f"{changed.total() / letters:.2%}{mostly}")


@functools.cache
def _is_letter(character: str) -> bool:
    return (unicodedata.category(character)[0] in "LM"
            and ord(character) not in _VARIATION_SELECTORS)


@functools.cache
def _changes(character: str) -> bool:
    if character.isascii() or not _is_letter(character):
        return False
    decomposed = unicodedata.normalize("NFD", character)
    return character != "".join(c for c in decomposed if unicodedata.category(c) != "Mn")


@functools.cache
def _script(character: str) -> str:
    """Returns the first word of the character's name, which for letters is that of the script."""
    name = unicodedata.name(character, "other").partition(" ")[0].partition("-")[0]
    return name if name == "CJK" else name.capitalize()

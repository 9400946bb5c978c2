"""Measures of a tokenizer on a text: unknown words, and letters that normalization changes.

BERT's uncased normalization decomposes characters (NFD) and drops non-spacing marks (Mn): Hangul
syllables become single letters, Indic and Thai vowel signs are lost, umlauts become other letters.
`propose_normalization` decides by the share of these letters. Scripts are Unicode's (UAX 24).
"""

import collections
import functools
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from electra_tf.platform.command_line import as_started
from electra_tf.text.tokenization import NFC, UNCASED, Normalization, TextSettings
from electra_tf.text.vocabulary import MAX_WORD_CHARACTERS, Vocabulary

_MAX_CHANGED_LETTERS = 0.01
"""Largest fraction of letters that stripping accents may change. English text has 0.04 %, Russian
1.5, German 1.7, French 3, Turkish and Japanese some 7, Hindi and Thai 20, Korean 100."""
_DIGITS, _SIGNS, _OTHER = "digits", "signs", "other scripts"
"""Groups of words without letters, and of words whose letters `_NAMES` lacks."""
_NAMES = dict(enumerate(
    ("Arabic", "Armenian", "Bengali", "Bopomofo", "Cherokee", "Coptic", "Cyrillic", "Deseret",
     "Devanagari", "Ethiopic", "Georgian", "Gothic", "Greek", "Gujarati", "Gurmukhi", "Han",
     "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao", "Latin", "Malayalam",
     "Mongolian", "Myanmar", "Ogham", "Old Italic", "Oriya", "Runic", "Sinhala", "Syriac", "Tamil",
     "Telugu", "Thaana", "Thai", "Tibetan"), start=2))
"""Name by ICU's number of the script; 0 and 1 are what scripts share, such as digits."""


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
    return [as_started(line) for line in lines]


def count_characters(text: str, weights: np.ndarray | None = None) -> collections.Counter[str]:
    """Returns the frequency of each character in a text, or the sums of their weights."""
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
    decomposed = unicodedata.normalize("NFD", character)
    return character != "".join(c for c in decomposed if unicodedata.category(c) != "Mn")


def word_scripts(texts: Sequence[str]) -> list[str]:
    """Returns the script of each word or piece, which is that of its first letter.

    Digits that a single script uses count as letters. Words without letters are "digits" or
    "signs"; scripts that are rare today are "other scripts".

    >>> word_scripts(["##ing", "3rd", "1,5", "—", "дом", "漢字"])
    ['Latin', 'Latin', 'digits', 'signs', 'Cyrillic', 'Han']
    """
    import tensorflow as tf  # It takes seconds, which most of this module doesn't need.

    points = tf.strings.unicode_decode(tf.constant(list(texts), tf.string), "UTF-8")
    numbers = points.with_flat_values(tf.strings.unicode_script(points.flat_values)).to_list()
    return [next((_NAMES.get(number, _OTHER) for number in row if number > 1), None)
            or (_DIGITS if any(unicodedata.category(char) == "Nd" for char in text) else _SIGNS)
            for text, row in zip(texts, numbers, strict=True)]


class UnknownScripts:
    """A counter of words that became [UNK] by their script; only their texts are split again."""

    def __init__(self, text: TextSettings):
        from electra_tf.text.tokenizer import WordSplitter

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
        rows = np.searchsorted(ends, unknown, side="right")
        affected = np.unique(rows)
        words = self._words([texts[row] for row in affected])
        # Every word has exactly one piece that does not continue a word; [UNK] is one.
        words_before = np.concatenate([[0], np.cumsum(~self._vocabulary.continues[ids])])
        number_in_row = words_before[unknown] - words_before[np.concatenate([[0], ends])[rows]]
        indices = words.row_splits.numpy()[np.searchsorted(affected, rows)] + number_in_row
        self.counts.update(word_scripts([
            word.decode() for word in words.flat_values.numpy()[indices]]))

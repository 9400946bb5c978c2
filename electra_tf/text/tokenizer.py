"""The WordPiece tokenizer: a TensorFlow graph for data preparation, training and serving."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from electra_tf.core.errors import UserError, shown
from electra_tf.text.normalization import UNCASED, Normalization, TextSettings
from electra_tf.text.vocabulary import MAX_WORD_CHARACTERS, SPECIAL_TOKENS, UNK

_MAX_TOKEN_BYTES = 256  # Limit of tensorflow-text's op.

_SPACES = (r"[\t\n\r\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]")
"""All of \\p{Z} except the space: matching every space takes 10 times as long."""
_BEFORE_TOKEN, _AFTER_TOKEN, _FIRST_MARK = "\ue000", "\ue001", 0xF0000
_PRIVATE = r"[\x{E000}-\x{F8FF}\x{F0000}-\x{10FFFF}]"
"""Characters that `_DROPPED` removes, therefore free to mark added tokens."""
_DROPPED = r"[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}]|\x{FFFD}"
"""All of \\p{C}, of which RE2's own class leaves out the unassigned code points."""
_DROPPED_WITH_ACCENTS = r"[^\p{L}\p{Mc}\p{Me}\p{N}\p{P}\p{S}\p{Z}]|\x{FFFD}"
"""Drops accents before NFD too, whose time grows with the square of a run of marks."""
_REORDERED = r"[\x{302E}\x{302F}\x{16FF0}\x{16FF1}\x{1D165}\x{1D166}\x{1D16D}-\x{1D172}]"
"""Other characters that NFD sorts."""
_LONG_TEXT = 4096  # Bytes; a run of marks in a shorter text takes little time.
_PUNCTUATION = r"[!-/:-@\[-`{-~]|\p{P}"
_CHINESE = (r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
            r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]")
_DELIMITERS = f"{_PUNCTUATION}|{_CHINESE}"
_LOCALE_DEPENDENT = {"İ": "i̇", "Į": "į", "Ì": "ì", "Í": "í", "Ĩ": "ĩ"}
_LONG_RUN = f"({_REORDERED}{{{MAX_WORD_CHARACTERS + 1}}}){_REORDERED}+"
_CUT_CHARACTERS = MAX_WORD_CHARACTERS // 2
LONG_WORD_CUT = f".{{{_CUT_CHARACTERS}}}\\p{{M}}{{0,30}}"
"""A part of a long word under NFC; it ends before a letter, not before its marks."""
_CASED = "|".join(rf"\p{{Cased}}\p{{Case_Ignorable}}{{{count}}}" for count in range(5))
FINAL_SIGMA = rf"(?<={_CASED})Σ(?!\p{{Case_Ignorable}}*\p{{Cased}})"
"""Capital sigma that lower-casing makes a final one (Unicode, section 3.13, Final_Sigma), for
libraries that have no such rule."""


class TokenizedWords(NamedTuple):
    """W words of N texts, with words that normalization empties."""

    texts: tf.RaggedTensor  # string [N, (words)], as written, but U+0001 for U+0000.
    starts: tf.RaggedTensor  # int64 [N, (words)]: first byte in the given text.
    ends: tf.RaggedTensor  # int64 [N, (words)]: one past the last byte.
    pieces: tf.RaggedTensor  # int32 [W, (pieces)]: WordPiece ids of all words.


class Pieces(NamedTuple):
    """WordPiece ids, and the bytes of the given text that each of them stands for."""

    ids: tf.RaggedTensor  # int32 [N, (pieces)].
    starts: tf.RaggedTensor  # int64 [N, (pieces)]: first byte of the first character.
    ends: tf.RaggedTensor  # int64 [N, (pieces)]: one past the last byte of the last character.


class WordSplitter(tf.Module):
    """A converter of text to normalized words: the tokenizer without its vocabulary."""

    def __init__(self, normalization: Normalization = UNCASED):
        super().__init__(name="word_splitter")
        self.normalization = normalization
        self.literal_marks: dict[str, str] = {}
        self.normalized_marks: dict[str, str] = {}

    def mark_added_tokens(self) -> dict[str, str]:
        """Lets `normalize` replace added tokens by marks, and returns the mark of every token.

        The mark of a normalized token of one word is its text between two characters, which one op
        writes for all such tokens. Any other token becomes a character of its own, by one op each.
        """
        # A private character for every token.
        literal = self.normalization.literal_tokens
        normalized = self.normalization.normalized_tokens
        marks = {token: chr(_FIRST_MARK + index)
                 for index, token in enumerate((*literal, *normalized))}

        # Normalized tokens of one word are written between two marks instead.
        if normalized:
            with tf.init_scope():
                texts = [text.decode() for text in self.normalize(tf.constant(normalized)).numpy()]
                marked = [f"{_BEFORE_TOKEN}{text}{_AFTER_TOKEN}" for text in texts]
                word_counts = _split_words(tf.constant(marked)).row_lengths().numpy()
            marks |= {token: mark for token, mark, count in zip(
                normalized, marked, word_counts, strict=True) if count == 1}
            self.normalized_marks = {text: marks[token] for token, text in zip(
                normalized, texts, strict=True) if text}

        self.literal_marks = {token: marks[token] for token in literal}
        return marks

    def added_phrases(self) -> str:
        """Returns a pattern of the added tokens that words would split; each ends with "|"."""
        normalization = self.normalization
        tokens = (*normalization.literal_tokens, *normalization.normalized_tokens)
        if not tokens:
            return ""
        with tf.init_scope():
            word_counts = _split_words(tf.constant(tokens)).row_lengths().numpy()
        caseless = normalization.normalized_tokens if normalization.lower_case else ()
        return "".join(
            f"(?{'i' if token in caseless else ''}:{re.escape(token)})|"
            for token, count in zip(tokens, word_counts, strict=True) if count > 1)

    def normalize(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns string [N]: texts cleaned, lower-cased and stripped of accents as configured."""
        return self.normalize_valid(
            tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore"))

    def normalize_valid(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns `normalize` of texts that are valid UTF-8, in half the time."""
        # Literal tokens become marks, before any other change.
        strip_accents = self.normalization.strip_accents
        dropped = _DROPPED_WITH_ACCENTS if strip_accents else _DROPPED
        if self.literal_marks:
            texts = tf.strings.regex_replace(texts, _PRIVATE, "")
            texts = _mark_tokens(texts, self.literal_marks)
            dropped = dropped.replace("[^", f"[^{_PRIVATE[1:-1]}")

        # White space becomes spaces; control and other invisible characters are dropped.
        texts = tf.strings.regex_replace(texts, _SPACES, " ")
        texts = tf.strings.regex_replace(texts, dropped, "")

        if self.normalization.lower_case:
            if not self.normalization.final_sigma:
                texts = tf.strings.regex_replace(texts, "Σ", "σ")
            # Lower-casing of Unicode follows the process's locale: under a Turkish one "I" becomes
            # a dotless i, under a Lithuanian one some letters gain a dot. Therefore ASCII is
            # lower-cased first, and where accents are kept, so are the other letters.
            texts = tf.strings.lower(texts)
            for capital, small in ({} if strip_accents else _LOCALE_DEPENDENT).items():
                texts = tf.strings.regex_replace(texts, capital, small)
            texts = tf.strings.lower(texts, encoding="utf-8")

        # Accents are what remains of letters after NFD as non-spacing marks (Mn).
        if strip_accents:
            # NFD would sort a long run of marks; its word becomes [UNK] in both cases.
            texts = _change_where(
                tf.strings.length(texts) > _LONG_TEXT, texts,
                lambda texts: tf.strings.regex_replace(texts, _LONG_RUN, r"\1"))
            texts = tf_text.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")

        # Normalized tokens become marks in the changed text.
        if self.normalized_marks:
            texts = _mark_tokens(texts, self.normalized_marks)
        if self.normalization.nfc:
            # NFC would sort longer runs of marks than those of stream-safe text (UAX #15).
            texts = tf.strings.regex_replace(texts, r"\p{M}{31,}", "")
            texts = tf_text.normalize_utf8(texts, "NFC")
            return _change_long_words(
                texts, _CUT_CHARACTERS, lambda word: tf.strings.regex_replace(
                    word, LONG_WORD_CUT, r"\0 "))
        return texts

    def words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words that `Tokenizer.tokenize` cuts into pieces, string [N, (words)]."""
        return _split_words(self.normalize(texts))


class Tokenizer(tf.Module):
    """A converter of text to WordPiece ids, equal to BERT's and ELECTRA's Python tokenizer.

    It normalizes, splits at spaces, punctuation and Chinese characters, then takes the longest
    known piece first. A special token in the text, like "[MASK]", is split into its characters;
    added tokens of `Normalization` are not split. A stock TensorFlow Serving has the ops. Texts are
    UTF-8; invalid bytes are dropped. Raises `UserError` for a vocabulary of special tokens only, or
    with a token of more than 256 bytes.

    Example:
        >>> from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
        >>> vocabulary = Vocabulary((*SPECIAL_TOKENS, "cafe", "##s", "!"))
        >>> tokenizer = Tokenizer(TextSettings(vocabulary=vocabulary))
        >>> tokenizer.tokenize(tf.constant(["Cafés!", ""])).to_list()
        [[5, 6, 7], []]
    """

    def __init__(self, text: TextSettings):
        super().__init__(name="tokenizer")
        # Vocabularies that tensorflow-text's op can't read.
        vocabulary, normalization = text.vocabulary, text.normalization
        if vocabulary.size == len(SPECIAL_TOKENS):
            raise UserError(f"{vocabulary.source} holds special tokens only; it needs words.")
        for line, token in enumerate(vocabulary.tokens, start=1):
            if len(token.encode()) > _MAX_TOKEN_BYTES:
                raise UserError(f"{vocabulary.source}: line {line} has more than "
                                f"{_MAX_TOKEN_BYTES} bytes: {shown(token)}; remove it.")

        # The WordPiece op; marks stand for added tokens in its vocabulary, as in the text.
        self.splitter = WordSplitter(normalization)
        marks = self.splitter.mark_added_tokens()
        self._max_word_bytes = 4 * normalization.max_word_characters
        self._wordpiece = tf_text.FastWordpieceTokenizer(
            vocab=[marks.get(token, token) for token in vocabulary.tokens], unknown_token=UNK,
            token_out_type=tf.int32, max_bytes_per_word=self._max_word_bytes,
            support_detokenization=False)

        # Patterns that split a text into words with offsets: where words end, and which ends are
        # words themselves.
        phrases = self.splitter.added_phrases()
        self._word_ends = f"{phrases} |{_SPACES}|{_DELIMITERS}"
        self._delimiter_words = f"{phrases}{_DELIMITERS}"
        combining = (r"[\p{M}\x{1160}-\x{11FF}]*" if normalization.nfc else
                     r"\p{Mn}*" if normalization.strip_accents else "")
        self._unit = f".{combining}"
        """A part of a word whose normalization does not depend on the rest of the word."""

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the WordPiece ids, int32 [N, (pieces)], of texts, string [N]; none special."""
        return self._wordpiece.tokenize(self._mark_long_words(self.splitter.normalize(texts)))

    def tokenize_valid(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns `tokenize` of texts that are valid UTF-8, a third faster."""
        return self._wordpiece.tokenize(self._mark_long_words(self.splitter.normalize_valid(texts)))

    def _mark_long_words(self, normalized: tf.Tensor) -> tf.Tensor:
        """Replaces words with too many characters by one with too many bytes, the op's limit."""
        if self.splitter.normalization.nfc:
            return normalized
        return _change_long_words(
            normalized, self.splitter.normalization.max_word_characters,
            lambda _: tf.constant("a" * (self._max_word_bytes + 1)))

    def tokenize_words(self, texts: tf.Tensor) -> TokenizedWords:
        """Returns words and their pieces; a punctuation mark or Chinese character is a word.

        Words are lower-cased one by one: a capital sigma before punctuation always becomes a final
        one, in `tokenize` only if no letter follows. `texts` are UTF-8, string [N]; offsets count
        bytes after invalid ones are dropped.
        """
        words, starts, ends = self._split(texts)
        return TokenizedWords(words, starts, ends, self.tokenize(words.flat_values))

    def tokenize_with_offsets(self, texts: tf.Tensor, unit: str | None = None) -> Pieces:
        """Returns the pieces of `tokenize_words`, each with its characters in the given text.

        Accents that normalization strips belong to the character before them, or to no piece with
        the unit ".", as in BertTokenizerFast: `unit` is a pattern of parts of a word. Pieces of one
        character, such as a Hangul syllable under NFD, have the same offsets. Offsets are the
        word's if it is longer than the reference reads, or composed across dropped characters.
        """
        # Words as written and as normalized, string [W], and the pieces of the normalized ones.
        words, starts, ends = self._split(texts)
        written = words.flat_values
        normalized = self._mark_long_words(self.splitter.normalize(written))
        ids, begins, limits = self._wordpiece.tokenize_with_offsets(normalized)

        # Every piece's word, and its bytes within the normalized word.
        word = ids.value_rowids()
        # Normalized bytes before every piece; sums of sizes leave out spaces in cut words.
        bytes_before = _running_sums(limits.flat_values - begins.flat_values)
        word_start = tf.gather(bytes_before, ids.row_starts())
        word_size = tf.gather(bytes_before, ids.row_limits()) - word_start
        piece_start, piece_end = (part - tf.gather(word_start, word)
                                  for part in (bytes_before[:-1], bytes_before[1:]))

        # In words of ASCII without an added token a byte is a character.
        sizes = tf.strings.length(written)
        is_plain = ((tf.strings.length(written, unit="UTF8_CHAR") == sizes)
                    & (tf.strings.length(normalized, unit="UTF8_CHAR") == sizes)
                    & (tf.strings.length(normalized) == sizes))
        # Other words are mapped by their units, if these add up to the normalized word.
        units, unit_starts, unit_ends = tf_text.regex_split_with_offsets(
            tf.where(is_plain, "", written), unit or self._unit, unit or self._unit)
        distinct, index = tf.unique(units.flat_values)
        unit_bytes = _running_sums(tf.cast(tf.gather(
            tf.strings.length(self.splitter.normalize(distinct)), index), tf.int64))
        first_unit, last_unit = (tf.gather(unit_bytes, bound)
                                 for bound in (units.row_starts(), units.row_limits()))
        is_mapped = last_unit - first_unit == word_size

        # Bytes in the given text, [N, (pieces)]: the word's offset plus the bytes within it. An
        # offset in normalized bytes lies in the unit whose running sum includes it.
        def offsets(word_bounds: tf.RaggedTensor, bytes_in_word: tf.Tensor,
                    unit_bounds: tf.Tensor, side: str) -> tf.RaggedTensor:
            unit = tf.searchsorted(
                unit_bytes[1:], tf.gather(first_unit, word) + bytes_in_word, side=side)
            inside = tf.where(tf.gather(is_plain, word), bytes_in_word, tf.gather(
                tf.concat([unit_bounds.flat_values, [0]], axis=0), unit))
            bounds = tf.where(tf.gather(is_plain | is_mapped, word),
                              tf.gather(starts.flat_values, word) + inside,
                              tf.gather(word_bounds.flat_values, word))
            return words.with_flat_values(ids.with_flat_values(bounds)).merge_dims(1, 2)

        return Pieces(words.with_flat_values(ids).merge_dims(1, 2),
                      offsets(starts, piece_start, unit_starts, "right"),
                      offsets(ends, piece_end, unit_ends, "left"))

    def _split(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns words, and their first bytes and ends; see `TokenizedWords`."""
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
        # The split ends at a NUL; any other control character is dropped as it would be.
        texts = tf.strings.regex_replace(texts, r"\x00", "\x01")
        return tf_text.regex_split_with_offsets(texts, self._word_ends, self._delimiter_words)


def _running_sums(values: tf.Tensor) -> tf.Tensor:
    """Returns the sums of the first 0, 1, ... n values, [n + 1]."""
    return tf.concat([[0], tf.cumsum(values)], axis=0)


def _mark_tokens(texts: tf.Tensor, marks: Mapping[str, str]) -> tf.Tensor:
    """Replaces tokens by their marks, as words: the first token, of several the longest."""
    longest_first = sorted(marks, key=len, reverse=True)
    texts = tf.strings.regex_replace(texts, "|".join(map(re.escape, longest_first)),
                                     rf" {_BEFORE_TOKEN}\0{_AFTER_TOKEN} ")

    def write_characters(texts: tf.Tensor) -> tf.Tensor:
        for token, mark in marks.items():
            if len(mark) == 1:
                texts = tf.strings.regex_replace(
                    texts, f"{_BEFORE_TOKEN}{re.escape(token)}{_AFTER_TOKEN}", mark)
        return texts

    return _change_where(tf.strings.regex_full_match(texts, f"(?s).*{_BEFORE_TOKEN}.*"), texts,
                         write_characters)


def _change_where(condition: tf.Tensor, texts: tf.Tensor,
                  change: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Applies `change` to the few texts, string [N], for which bool [N] is true."""
    rows = tf.where(condition)
    return tf.tensor_scatter_nd_update(texts, rows, change(tf.gather_nd(texts, rows)))


def _split_words(normalized: tf.Tensor) -> tf.RaggedTensor:
    return tf_text.regex_split(normalized, f" |{_DELIMITERS}", _DELIMITERS)


def _change_long_words(normalized: tf.Tensor, max_characters: int,
                       change: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Changes words of more characters; `change` maps string [W] to string [W] or [].

    Only the few texts with that many characters between two spaces are split into words.
    """
    def change_words(texts: tf.Tensor) -> tf.Tensor:
        words = _split_words(texts)
        lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
        words = words.with_flat_values(tf.where(
            lengths > max_characters, change(words.flat_values), words.flat_values))
        return tf.strings.reduce_join(words, axis=-1, separator=" ")

    return _change_where(
        tf.strings.regex_full_match(normalized, f".*[^ ]{{{max_characters + 1}}}.*"), normalized,
        change_words)

"""Counts the words of a corpus, and learns a WordPiece vocabulary from the counts.

Words start as characters, "a ##b ##c"; each merge makes the most frequent adjacent pair one piece
(Sennrich et al. 2016, "Neural machine translation of rare words with subword units"). The library
`tokenizers` merges.
"""

import collections
import functools
from collections.abc import Iterable, Iterator, Mapping

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from data_prep.cleaning.plan import CleaningPlan
from data_prep.documents import batches
from data_prep.settings import CleaningSettings
from data_prep.sources.source import Source
from data_prep.work_units import CorpusPart, Progress, Runner, WordCounts, WorkUnit, split_corpus
from electra_tf.core.errors import UserError
from electra_tf.text import coverage
from electra_tf.text.normalization import NFC, Normalization
from electra_tf.text.vocabulary import (
    CONTINUATION,
    MAX_WORD_CHARACTERS,
    SPECIAL_TOKENS,
    Vocabulary,
)

MAX_WORDS = 4_000_000  # Different words kept at a time, about 500 MB.
WORDS_PER_CHARACTER = 250
"""A character is an entry if at least one of `WORDS_PER_CHARACTER * vocab_size` words has it."""
MAX_CHARACTERS = 4_000_000
"""Characters of the most frequent words, from which pieces are learned; 20 million words of English
have 219,000 different ones with 1.6 million characters."""
MAX_PIECE_CHARACTERS = 50  # As in tensorflow-text's learner; its tokenizer takes 256 bytes at most.
_MIN_PAIR_COUNT = 2  # Least count of a pair that becomes a piece.
_MAX_REPEATED_WORDS = 20_000_000
"""Larger counts are divided, so that a corpus of any size takes the trainer about 15 CPU s."""
_MAX_REPEATS = 10_000  # Repetitions of a word in one text for the trainer.
_SEPARATOR = "\n"
_FIRST_SYMBOL = 0x10000  # Code point that stands for the most frequent character.
_UNIT_BYTES = 8 << 20
_BATCH_CHARACTERS = 1 << 19


def count_corpus_words(
    source: Source, normalization: Normalization, runner: Runner,
    line_rules: CleaningSettings = CleaningSettings()  # noqa: B008 (frozen)
) -> WordCounts:
    """Returns the count of each word of a text, the same for every runner.

    Raises `UserError` for an unreadable text, and for one without a word that `line_rules` keep.
    """
    count = functools.partial(count_words, normalization=normalization,
                              cleaning=CleaningPlan(line_rules))
    parts = split_corpus(source)
    cut = functools.partial(CorpusPart.units, unit_bytes=_UNIT_BYTES)
    progress, words = Progress(source, parts), 0
    counts: WordCounts = collections.Counter()
    for unit_counts in runner.add_up(parts, cut, count):
        words += unit_counts.total()
        progress.update({"words": words})
        counts.update(unit_counts)
        if len(counts) > MAX_WORDS:
            counts = without_rarest(counts, MAX_WORDS // 2)
    if not counts:
        raise UserError("--input holds no word: every line is blank, dropped by cleaning or, with "
                        "--on_error=skip, in a damaged document; give files with text.")
    return counts


def count_words(unit: WorkUnit, normalization: Normalization,
                cleaning: CleaningPlan = CleaningPlan()) -> WordCounts:  # noqa: B008 (frozen)
    """Returns the count of each normalized word in a unit; `UserError` for a damaged text."""
    splitter = _splitter(normalization)
    counts: WordCounts = collections.Counter()
    for batch in batches(cleaning.clean(unit, collections.Counter()), _BATCH_CHARACTERS):
        counts.update(splitter.words(batch).flat_values.numpy().tolist())
    return counts


def without_rarest(counts: WordCounts, max_words: int) -> WordCounts:
    """Drops all words up to the smallest count that leaves at most `max_words` of them."""
    kept, threshold = len(counts), 0
    for count, words in sorted(collections.Counter(counts.values()).items()):
        if kept <= max_words:
            break
        kept, threshold = kept - words, count
    return collections.Counter({word: n for word, n in counts.items() if n > threshold})


def choose_normalization(counts: WordCounts) -> tuple[Normalization, WordCounts, str]:
    """Returns a normalization, the counts under it, and the reason, from counts under `NFC`."""
    chosen, reason = coverage.propose_normalization(coverage.count_characters_of_words(counts))
    if chosen == NFC:
        return chosen, counts, reason
    splitter = _splitter(chosen)
    total: WordCounts = collections.Counter()
    for batch in batches((word.decode() for word in counts), _BATCH_CHARACTERS):
        words = splitter.words(batch)
        for word, index in zip(words.flat_values.numpy().tolist(),
                               words.value_rowids().numpy().tolist(), strict=True):
            total[word] += counts[batch[index].encode()]
    return chosen, total, reason


@functools.lru_cache(maxsize=2)
def _splitter(normalization: Normalization):
    # Only the processes that split words need TensorFlow, which takes 400 MB.
    from electra_tf.text.tokenizer import WordSplitter

    return WordSplitter(normalization)


def learn(counts: Mapping[bytes, int], vocab_size: int, reserved_tokens: int = 0) -> Vocabulary:
    """Returns a vocabulary of `vocab_size` tokens, fewer if no other pair occurs twice.

    The order is special tokens, `reserved_tokens` entries [unused0] and so on, single characters by
    falling count, and longer pieces in the order of merges. The most frequent words of up to
    `MAX_WORD_CHARACTERS` are used, `MAX_CHARACTERS` in all.

    Characters are at most half of the pieces; words with other characters are not used. Of equally
    frequent pairs, the pair of more frequent characters is merged first. The order of `counts` has
    no effect.
    """
    # Count the characters of the most frequent words.
    words: list[tuple[str, int]] = []
    character_counts: collections.Counter[str] = collections.Counter()
    num_characters = 0
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        text = word.decode()
        num_characters += len(text)
        if num_characters > MAX_CHARACTERS:
            break
        if len(text) <= MAX_WORD_CHARACTERS:
            words.append((text, count))
            for character in _characters(text):
                character_counts[character] += count
    # Choose the characters that are entries.
    num_pieces = vocab_size - len(SPECIAL_TOKENS) - reserved_tokens
    num_words = sum(count for _, count in words)
    min_count = num_words / (WORDS_PER_CHARACTER * num_pieces)
    ranked = sorted(character_counts.items(), key=lambda item: (-item[1], item[0]))
    characters = [character for character, count in ranked[:max(1, num_pieces // 2)]
                  if count >= min_count]
    # Merge pairs. The trainer numbers what has no prefix by code point, and the numbers decide
    # between equally frequent pairs; "##" would make its order random.
    symbols = {character: chr(_FIRST_SYMBOL + rank) for rank, character in enumerate(characters)}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(_SEPARATOR)
    divisor = 1 + num_words // _MAX_REPEATED_WORDS
    tokenizer.train_from_iterator(
        _repeated(("".join(symbols[character] for character in _characters(text)),
                   count // divisor)
                  for text, count in words if symbols.keys() >= set(_characters(text))),
        trainers.BpeTrainer(vocab_size=num_pieces, min_frequency=_MIN_PAIR_COUNT,
                            initial_alphabet=list(symbols.values()),
                            max_token_length=MAX_PIECE_CHARACTERS, show_progress=False))
    numbers = tokenizer.get_vocab()
    pieces = [[characters[ord(symbol) - _FIRST_SYMBOL] for symbol in piece]
              for piece in sorted(numbers, key=numbers.__getitem__)]
    tokens = [first + "".join(character.removeprefix(CONTINUATION) for character in rest)
              for first, *rest in pieces]
    reserved = [f"[unused{number}]" for number in range(reserved_tokens)]
    return Vocabulary((*SPECIAL_TOKENS, *reserved, *tokens), source="the learned vocabulary")


def _characters(word: str) -> list[str]:
    return [word[0], *(CONTINUATION + character for character in word[1:])]


def _repeated(words: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yields each word as often as it occurs, because the trainer takes texts and no counts."""
    for word, count in words:
        for first in range(0, count, _MAX_REPEATS):
            yield f"{word}{_SEPARATOR}" * min(_MAX_REPEATS, count - first)

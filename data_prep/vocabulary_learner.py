"""Counts the words of a corpus, and learns a WordPiece vocabulary from the counts."""

import collections
import functools
from collections.abc import Iterable, Iterator

from data_prep import piece_merges
from data_prep.cleaning.plan import CleaningPlan
from data_prep.cleaning.settings import CleaningSettings
from data_prep.documents import ReadingNotes, batches
from data_prep.sources.source import Source
from data_prep.work_units import Piece, Progress, Runner, Words, WorkUnit, pieces_of
from electra_tf.platform.errors import UserError
from electra_tf.text import coverage
from electra_tf.text.tokenization import NFC, Normalization
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

MOST_WORDS = 4_000_000
"""Different words kept at a time, about 500 MB."""
_UNIT_BYTES = 8 << 20
_BATCH_CHARACTERS = 1 << 19


def count_corpus_words(
    source: Source, normalization: Normalization, runner: Runner,
    line_rules: CleaningSettings = CleaningSettings()  # noqa: B008 (frozen)
) -> Words:
    """Returns the count of each word of a text, the same for every runner.

    Raises `UserError` for an unreadable text, and for one without a word that `line_rules` keep.
    """
    count = functools.partial(count_words, normalization=normalization,
                              cleaning=CleaningPlan(line_rules))
    pieces = pieces_of(source)
    cut = functools.partial(Piece.units, unit_bytes=_UNIT_BYTES)
    progress = Progress(source, pieces)

    def parts() -> Iterator[Words]:
        words = 0
        for part in runner.add_up(pieces, cut, count):
            words += part.total()
            progress.update({"words": words})
            yield part

    counts = merge_counts(parts())
    if not counts:
        raise UserError("--input holds no word: every line is blank, dropped by cleaning or, with "
                        "--on_error=skip, in a damaged document; give files with text.")
    return counts


def count_words(unit: WorkUnit, normalization: Normalization,
                cleaning: CleaningPlan = CleaningPlan()) -> Words:  # noqa: B008 (frozen)
    """Returns the count of each normalized word in a unit; `UserError` for a damaged text."""
    splitter = _splitter(normalization)
    counts: Words = collections.Counter()
    lines = cleaning.cleaner(unit).clean(unit.lines(ReadingNotes()))
    for batch in batches(lines, _BATCH_CHARACTERS):
        counts.update(splitter.words(batch).flat_values.numpy().tolist())
    return counts


def merge_counts(parts: Iterable[Words], most_words: int = MOST_WORDS) -> Words:
    """Adds up counts, and drops the rarest words when there are more than `most_words`."""
    total: Words = collections.Counter()
    for part in parts:
        total.update(part)
        if len(total) > most_words:
            total = _without_rarest(total, most_words // 2)
    return total


def _without_rarest(counts: Words, most: int) -> Words:
    """Drops all words up to the smallest count that leaves at most `most` of them."""
    left, threshold = len(counts), 0
    for count, words in sorted(collections.Counter(counts.values()).items()):
        if left <= most:
            break
        left, threshold = left - words, count
    return collections.Counter({word: n for word, n in counts.items() if n > threshold})


def choose_normalization(counts: Words) -> tuple[Normalization, Words, str]:
    """Returns a normalization, the counts under it, and the reason, from counts under `NFC`."""
    chosen, reason = coverage.propose_normalization(coverage.count_characters_of_words(counts))
    if chosen != NFC:
        counts = normalized_counts(counts, chosen)
    return chosen, counts, reason


def normalized_counts(counts: Words, normalization: Normalization) -> Words:
    """Returns the counts under a normalization, from those under `tokenization.NFC`."""
    splitter = _splitter(normalization)
    total: Words = collections.Counter()
    for batch in batches((word.decode() for word in counts), _BATCH_CHARACTERS):
        words = splitter.words(batch)
        for word, index in zip(words.flat_values.numpy().tolist(),
                               words.value_rowids().numpy().tolist(), strict=True):
            total[word] += counts[batch[index].encode()]
    return total


@functools.lru_cache(maxsize=2)
def _splitter(normalization: Normalization):
    # Only the processes that split words need TensorFlow, which takes 400 MB.
    from electra_tf.text.tokenizer import WordSplitter

    return WordSplitter(normalization)


def learn(counts: Words, vocab_size: int, reserved_tokens: int = 0) -> Vocabulary:
    """Returns a vocabulary of `vocab_size` tokens, fewer if no other pair occurs twice.

    The order is special tokens, `reserved_tokens` entries [unused0] and so on, characters, and
    longer pieces by about falling count.
    """
    reserved = [f"[unused{number}]" for number in range(reserved_tokens)]
    pieces = piece_merges.learn_pieces(counts, vocab_size - len(SPECIAL_TOKENS) - reserved_tokens)
    return Vocabulary((*SPECIAL_TOKENS, *reserved, *pieces.characters, *pieces.merged),
                      source="the learned vocabulary")

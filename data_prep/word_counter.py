"""Counts the words of a corpus within a bounded memory."""

import collections
import functools
from collections.abc import Iterable

import tensorflow as tf

from data_prep.cleaning.plan import NO_CLEANING, CleaningPlan
from data_prep.documents import ReadingNotes, batches
from data_prep.work_units import WorkUnit
from electra_tf.text.tokenization import Normalization
from electra_tf.text.tokenizer import WordSplitter

_BATCH_CHARACTERS = 1 << 19
MOST_WORDS = 4_000_000
"""Different words kept at a time, about 500 MB."""


def count_words(
    unit: WorkUnit, normalization: Normalization, cleaning: CleaningPlan = NO_CLEANING
) -> collections.Counter[bytes]:
    """Returns how often each word, as the tokenizer sees it, occurs in a unit of text."""
    splitter = _splitter(normalization)
    counts: collections.Counter[bytes] = collections.Counter()
    lines = cleaning.cleaner(unit).clean(unit.lines(ReadingNotes()))
    for batch in batches(lines, _BATCH_CHARACTERS):
        counts.update(splitter.words(tf.constant(batch)).flat_values.numpy().tolist())
    return counts


def normalized_counts(
    counts: collections.Counter[bytes], normalization: Normalization
) -> collections.Counter[bytes]:
    """Returns the counts under a normalization, from those under `normalization.NFC`."""
    splitter = _splitter(normalization)
    total: collections.Counter[bytes] = collections.Counter()
    for batch in batches((word.decode() for word in counts), _BATCH_CHARACTERS):
        words = splitter.words(tf.constant(batch))
        for word, index in zip(words.flat_values.numpy().tolist(),
                               words.value_rowids().numpy().tolist(), strict=True):
            total[word] += counts[batch[index].encode()]
    return total


def merge_counts(
    parts: Iterable[collections.Counter[bytes]], most_words: int = MOST_WORDS
) -> collections.Counter[bytes]:
    """Adds up counts and drops the rarest words when there are more than `most_words`."""
    total: collections.Counter[bytes] = collections.Counter()
    for part in parts:
        total.update(part)
        if len(total) > most_words:
            total = _without_rarest(total, most_words // 2)
    return total


def _without_rarest(counts: collections.Counter[bytes], most: int) -> collections.Counter[bytes]:
    """Drops all words up to the least count that leaves at most `most` of them."""
    words_with = collections.Counter(counts.values())
    left = len(counts)
    threshold = 0
    for count in sorted(words_with):
        if left <= most:
            break
        left -= words_with[count]
        threshold = count
    return collections.Counter({word: n for word, n in counts.items() if n > threshold})


@functools.lru_cache(maxsize=2)
def _splitter(normalization: Normalization) -> WordSplitter:
    return WordSplitter(normalization)

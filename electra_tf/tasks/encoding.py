"""From examples to token ids: [CLS] text [SEP], [CLS] text [SEP] text [SEP], or runs of words."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.input.buckets import Row
from electra_tf.tasks.examples import TaggedExample, TextExample
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary

CHUNK = 20_000
"""Texts that are tokenized by one call."""


class ExampleEncoder:
    """Turns examples into rows of at most `max_length` tokens."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, max_length: int):
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._max_length = max_length

    def texts(self, examples: Sequence[TextExample], labels: Sequence[str] = ()) -> list[Row]:
        """Encodes texts and pairs; a pair that is too long loses tokens of the longer one.

        Args:
            examples: with one or two texts each.
            labels: the label set; empty for regression.

        Returns:
            One row each, with the target "label": int32 index, or float32; 0 where not known.
        """
        index = {label: number for number, label in enumerate(labels)}
        pieces = self.pieces([text for example in examples for text in example.texts])
        rows, first = [], 0
        for example in examples:
            parts = pieces[first:first + len(example.texts)]
            first += len(parts)
            known = example.label is not None
            label = (np.int32(index[example.label] if known else 0) if labels
                     else np.float32(example.label if known else 0.0))
            rows.append(self._row(parts, {"label": label}))
        return rows

    def tagged(self, examples: Sequence[TaggedExample],
               tags: Sequence[str]) -> tuple[list[Row], list[tuple[int, int]]]:
        """Encodes sentences word by word; one that is too long becomes several rows.

        A word of which nothing is left after cleaning is an [UNK].

        Args:
            examples: sentences.
            tags: the tag set.

        Returns:
            Rows with the targets "first_piece", int32 position of every word, and "tag", int32
            index (0 where not known); and for every row the example's index and the number of its
            first word.
        """
        index = {tag: number for number, tag in enumerate(tags)}
        unknown = np.array([self._vocabulary.unk_id], np.int32)
        pieces = self.pieces([word for example in examples for word in example.words])
        rows, origins, first = [], [], 0
        for number, example in enumerate(examples):
            words = [word[:self._max_length - 2] if len(word) else unknown
                     for word in pieces[first:first + len(example.words)]]
            first += len(words)
            for begin, end in windows([len(word) for word in words], self._max_length - 2):
                part = words[begin:end]
                starts = 1 + np.cumsum([0, *(len(word) for word in part[:-1])], dtype=np.int32)
                known = [index[tag] for tag in example.tags[begin:end]] if example.tags else (
                    [0] * len(part))
                rows.append(self._row([np.concatenate(part)], {
                    "first_piece": starts, "tag": np.array(known, np.int32)}))
                origins.append((number, begin))
        return rows, origins

    def pieces(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Returns the word pieces of every text, int32 [n], without special tokens."""
        found: list[np.ndarray] = []
        for first in range(0, len(texts), CHUNK):
            ragged = self._tokenizer.tokenize(tf.constant(texts[first:first + CHUNK], tf.string))
            found += np.split(ragged.flat_values.numpy(), ragged.row_splits.numpy()[1:-1])
        return found

    def _row(self, parts: Sequence[np.ndarray], targets: Mapping[str, np.ndarray]) -> Row:
        specials = 1 + len(parts)
        kept = shortened([len(part) for part in parts], self._max_length - specials)
        separator = [self._vocabulary.sep_id]
        segments = [np.concatenate([part[:size], separator])
                    for part, size in zip(parts, kept, strict=True)]
        segments[0] = np.concatenate([[self._vocabulary.cls_id], segments[0]])
        return Row(
            np.concatenate(segments).astype(np.int32),
            np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in segments]),
            targets)


def shortened(lengths: Sequence[int], limit: int) -> list[int]:
    """Takes from the longer of two texts, the second if they are equal, until both fit.

    >>> shortened([10, 4], 8)
    [4, 4]
    >>> shortened([10, 4], 7)
    [4, 3]
    >>> shortened([9], 7)
    [7]
    """
    if len(lengths) == 1:
        return [min(lengths[0], limit)]
    first, second = lengths
    half = limit // 2
    if first + second > limit:
        if second <= half:
            first = limit - second
        elif first <= limit - half:
            second = limit - first
        else:
            first, second = limit - half, half
    return [first, second]


def windows(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Cuts a sequence into runs, each as long as fits.

    Args:
        sizes: of the items, none above `limit`.
        limit: largest sum of a run.

    Returns:
        Beginning and end of every run, at least one.

    >>> windows([3, 3, 3, 3], 7)
    [(0, 2), (2, 4)]
    """
    runs, begin, total = [], 0, 0
    for position, size in enumerate(sizes):
        if total + size > limit:
            runs.append((begin, position))
            begin, total = position, 0
        total += size
    return [*runs, (begin, len(sizes))]

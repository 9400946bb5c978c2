"""From examples to token ids: [CLS] text [SEP], [CLS] text [SEP] text [SEP], or runs of words."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.input.buckets import Row
from electra_tf.tasks import word_rows
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
        room = self._max_length - 2
        ids, ends = self._word_pieces([word for one in examples for word in one.words], room)
        text_splits = np.cumsum([0, *(len(one.words) for one in examples)], dtype=np.int32)
        first_words = _row_starts(tf.constant(np.diff(ends, prepend=0), tf.int32),
                                  tf.constant(text_splits), tf.constant(room)).numpy()
        begins = np.concatenate([[0], ends])
        rows, origins = [], []
        for first, last in itertools.pairwise([*first_words, len(ends)]):
            number = int(np.searchsorted(text_splits, first, side="right")) - 1
            begin = int(first - text_splits[number])
            known = ([index[tag] for tag in examples[number].tags[begin:begin + last - first]]
                     if examples[number].tags else [0] * (last - first))
            rows.append(self._row([ids[begins[first]:begins[last]]], {
                "first_piece": (1 + begins[first:last] - begins[first]).astype(np.int32),
                "tag": np.array(known, np.int32)}))
            origins.append((number, begin))
        return rows, origins

    def _word_pieces(self, words: Sequence[str], room: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the pieces of all words, and how many there are up to each word's end."""
        ids, sizes = [np.zeros([0], np.int32)], [np.zeros([0], np.int64)]
        for first in range(0, len(words), CHUNK):
            ragged = word_rows.word_pieces(
                self._tokenizer, tf.constant(words[first:first + CHUNK], tf.string),
                self._vocabulary.unk_id, room)
            ids.append(ragged.flat_values.numpy())
            sizes.append(ragged.row_lengths().numpy())
        return np.concatenate(ids), np.cumsum(np.concatenate(sizes))

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


_row_starts = tf.function(word_rows.row_starts, autograph=False, input_signature=[
    tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)])

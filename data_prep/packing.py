"""Packs tokenized lines into examples `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]`.

A packing yields the examples of the lines of a unit of work. Every token goes into exactly one
example, in order. Python code runs once per example, not per token: segments are slices of one
array, and `bytes.find` searches for the positions to cut.
"""

import bisect
import dataclasses
import functools
import random
import typing
from collections.abc import Iterator

import numpy as np

MIN_SEQUENCE = 5  # Tokens of `[CLS] a [SEP] b [SEP]`.


class TokenizedLines(typing.NamedTuple):
    """The N lines of a unit of work with T tokens, without special tokens."""

    ids: np.ndarray  # `Layout.dtype` [T], one line after another.
    ends: np.ndarray  # int [N], ascending: one past each line's last token.
    ends_document: np.ndarray  # bool [N], True for an entry that is a document's end, not a line.


class Example(typing.NamedTuple):
    """One example without padding; its ids are stored as `Layout.dtype`."""

    ids: bytes
    first_segment_length: int
    """Tokens of segment 0 with [CLS] and its [SEP]; all of them if there is one segment."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """The settings of an example's form that both packings share."""

    max_seq_length: int
    cls_id: int
    sep_id: int
    continues: np.ndarray
    """bool [V], `Vocabulary.continues`: packings avoid segments that begin with such a piece."""
    dtype: np.dtype
    single_segment_rate: float = 0.1  # Fraction of examples with one segment.
    short_example_rate: float = 0.05
    """Fraction of examples with a random shorter length; `pack_reference` only."""

    @functools.cached_property
    def _special(self) -> tuple[bytes, bytes]:
        cls, sep = np.array([self.cls_id, self.sep_id], self.dtype)
        return cls.tobytes(), sep.tobytes()

    def example(self, first: memoryview, second: memoryview) -> Example:
        """Adds the special tokens to one segment of ids, or to two if `second` isn't empty."""
        # [CLS] A [SEP] B [SEP], or [CLS] A [SEP].
        cls, sep = self._special
        ids = (cls, first, sep, second, sep) if second else (cls, first, sep)
        return Example(b"".join(ids), len(first) + 2)


def pack_full(text: TokenizedLines, layout: Layout, generator: random.Random) -> Iterator[Example]:
    """Yields examples of exactly L tokens: documents follow each other with a [SEP] between them.

    The stream of tokens is cut every L - 2 or L - 3 tokens; only the last example may be shorter.
    With probability `single_segment_rate` an example is one segment. Otherwise two segments meet

    1. at the [SEP] between two documents that is nearest to the middle; otherwise
    2. at a new [SEP] at the line end nearest to the middle, within the middle half; otherwise
    3. at a new [SEP] at the word start nearest to the middle.

    A [SEP] between documents that would begin an example is dropped.
    """
    # A [SEP] follows the last token of every document with tokens but the last one.
    document_ends = np.unique(text.ends[text.ends_document])
    document_ends = document_ends[(document_ends > 0) & (document_ends < text.ids.size)]
    stream = np.insert(text.ids, document_ends, layout.sep_id)
    # Each [SEP] inserted before a line's end moves this end by one.
    line_ends = text.ends + np.searchsorted(document_ends, text.ends)
    # Mark where a segment may end or begin: one byte per token, for `bytes.find`.
    separators = stream == layout.sep_id
    within_document = ~separators
    within_document[1:] &= ~separators[:-1]
    ends_line = np.zeros(stream.size + 1, bool)
    ends_line[line_ends] = True
    marks = _Marks(separators.tobytes(), (ends_line[:-1] & within_document).tobytes(),
                   (~layout.continues[stream] & within_document).tobytes())
    tokens, start = memoryview(stream), 0
    while start < len(tokens):
        start += marks.separators[start]  # A [SEP] that begins an example separates nothing.
        first, second = _segments(start, marks, layout, generator)
        yield layout.example(tokens[first], tokens[second])
        start = second.stop


class _Marks(typing.NamedTuple):
    """Positions in a stream: one byte per token, 1 or 0."""

    separators: bytes  # [SEP] between documents.
    line_ends: bytes  # First tokens of lines, except after a [SEP].
    word_starts: bytes  # First pieces of words, except after a [SEP].


def _segments(start: int, marks: _Marks, layout: Layout, generator: random.Random
              ) -> tuple[slice, slice]:
    """Returns the two segments of the example that begins at `start`."""
    # One segment, or two at a [SEP] of the stream: [CLS] and the last [SEP] are added.
    end = min(len(marks.separators), start + layout.max_seq_length - 2)
    single = generator.random() < layout.single_segment_rate or end - start < 2
    if not marks.separators[end - 1]:
        if single:
            return slice(start, end), slice(end, end)
        at = _nearest(marks.separators, start, (start + end) // 2, end)
        if at >= 0:
            return slice(start, at), slice(at + 1, end)
    # Otherwise a new [SEP] is added, at a line end in the middle half or at a word start.
    end = min(end, start + layout.max_seq_length - 3)
    middle, quarter = start + (end - start) // 2, (end - start) // 4
    at = _nearest(marks.line_ends, max(start + 1, middle - quarter), middle,
                  min(end, middle + quarter + 1))
    if at < 0:
        at = _nearest(marks.word_starts, start + 1, middle, end)
    at = middle if at < 0 else at
    return slice(start, at), slice(at, end)


def _nearest(marks: bytes, low: int, middle: int, high: int) -> int:
    """Returns the mark in [low, high) that is nearest to `middle`, the left one of two; or -1."""
    # The nearest marks at both sides, -1 for none.
    before, after = marks.rfind(1, low, middle + 1), marks.find(1, middle, high)
    if min(before, after) < 0:
        return max(before, after)
    return before if middle - before <= after - middle else after


def pack_reference(text: TokenizedLines, layout: Layout, generator: random.Random
                   ) -> Iterator[Example]:
    """Yields examples as in ELECTRA's build_pretraining_dataset.py, but every token is kept.

    Lines of one document are joined up to a target length: L, or with probability
    `short_example_rate` a random length in [5, L]. The first segment has about (target - 3) / 2
    tokens: a line that reaches this number is added with probability 1/2. The following lines are
    the second segment. A document's end ends the example.

    The reference drops tokens that do not fit. Here a line is split at a word start, and its rest
    goes to the second segment or the next example.
    """
    tokens, line_ends = memoryview(text.ids), text.ends.tolist()
    word_starts = (~layout.continues[text.ids]).tobytes()

    def line_end(at: int) -> int:
        return line_ends[bisect.bisect_right(line_ends, at)]

    def end_within_line(at: int, limit: int) -> int:
        """Returns the end of the line at `at`, or where to split it if it ends past `limit`."""
        end = line_end(at)
        if end <= limit:
            return end
        word_start = word_starts.rfind(1, at + 1, limit + 1)
        return limit if word_start < 0 else word_start

    def take(start: int, limit: int) -> int:
        """Returns `limit`, or the last start of a line or a word before it."""
        # Whole lines, and the words of the next line that fit, if it must be split.
        full_lines = bisect.bisect_right(line_ends, limit)
        at = max(start, line_ends[full_lines - 1]) if full_lines else start
        if at < limit:
            cut = end_within_line(at, limit)
            if at == start or word_starts[cut]:
                return cut
        return at

    at, target = 0, layout.max_seq_length
    for document_end in [*text.ends[text.ends_document].tolist(), len(tokens)]:
        while at < document_end:
            start = at
            if generator.random() < layout.single_segment_rate:
                # One segment: [CLS] A [SEP].
                middle = at = take(start, min(document_end, start + target - 2))
            else:
                # Segment 0: lines up to half of the target; the one that reaches it is drawn.
                goal = start + max(1, (target - 3) // 2)
                middle = end_within_line(start, goal)
                while middle < min(goal, document_end):
                    end = line_end(middle)
                    if end >= goal and (end > start + target - 4 or generator.random() >= 0.5):
                        break
                    middle = end
                at = take(middle, min(document_end, start + target - 3))
            yield layout.example(tokens[start:middle], tokens[middle:at])
            # Draw the target of the next example.
            target = layout.max_seq_length
            if generator.random() < layout.short_example_rate:
                target = generator.randint(MIN_SEQUENCE, target)


PACKINGS = {"full": pack_full, "reference": pack_reference}

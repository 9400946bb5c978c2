"""Packs tokenized lines into examples `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]`.

A packing takes lines with `add` and returns the examples that are complete; `finish` returns the
rest. Every token goes into exactly one example, in order. Python code runs once per example, not
per token: segments are slices of one array, and `bytes.find` searches for the positions to cut.
"""

import bisect
import dataclasses
import functools
import random
import typing

import numpy as np

MIN_SEQUENCE = 5  # Tokens of `[CLS] a [SEP] b [SEP]`.


class TokenizedLines(typing.NamedTuple):
    """N consecutive lines of text with T tokens, without special tokens."""

    ids: np.ndarray  # int [T], one line after another.
    ends: np.ndarray  # int [N], ascending: one past each line's last token.
    ends_document: np.ndarray
    """bool [N], True for an entry that is a document's end instead of a line."""


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
    """Fraction of examples with a random shorter length; `ReferencePacking` only."""

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


class FullPacking:
    """Examples of exactly L tokens: documents follow each other with a [SEP] between them.

    The stream of tokens is cut every L - 2 or L - 3 tokens; only the last example may be shorter.
    With probability `single_segment_rate` an example is one segment. Otherwise two segments meet

    1. at the [SEP] between two documents that is nearest to the middle; otherwise
    2. at a new [SEP] at the line end nearest to the middle, within the middle half; otherwise
    3. at a new [SEP] at the word start nearest to the middle.

    A [SEP] between documents that would begin an example is dropped.
    """

    def __init__(self, layout: Layout, generator: random.Random):
        self._layout = layout
        self._generator = generator
        self._stream = np.empty(0, layout.dtype)
        self._line_ends = np.empty(0, np.int64)  # Positions in the stream, past a line's end.

    def add(self, lines: TokenizedLines) -> list[Example]:
        """Takes the next lines of the text; returns the examples that are complete."""
        # A document's [SEP] follows its last token; documents without tokens have none.
        document_ends = np.unique(lines.ends[lines.ends_document])
        if document_ends.size and not document_ends[0] and not self._within_document():
            document_ends = document_ends[1:]
        ends = lines.ends[np.diff(lines.ends, prepend=0) > 0]  # Lines without tokens have no end.
        # Each [SEP] inserted before a line's end moves this end by one.
        self._line_ends = np.append(
            self._line_ends, self._stream.size + ends + np.searchsorted(document_ends, ends))
        self._stream = np.append(self._stream, np.insert(
            lines.ids.astype(self._stream.dtype), document_ends, self._layout.sep_id))
        return self._examples(self._layout.max_seq_length - 1)

    def finish(self) -> list[Example]:
        """Returns the remaining examples; no lines may follow."""
        # The last [SEP] of the stream separates nothing.
        if self._stream.size and not self._within_document():
            self._stream = self._stream[:-1]
        return self._examples(1)

    def _within_document(self) -> bool:
        return self._stream.size > 0 and self._stream[-1] != self._layout.sep_id

    def _examples(self, min_tokens: int) -> list[Example]:
        """Cuts examples while `min_tokens` remain; L - 1 include a following [SEP]."""
        # Mark where a segment may end or begin: one byte per token, for `bytes.find`.
        separators = self._stream == self._layout.sep_id
        within_document = ~separators
        within_document[1:] &= ~separators[:-1]
        ends_line = np.zeros(self._stream.size + 1, bool)
        ends_line[self._line_ends] = True
        marks = _Marks(separators.tobytes(), (ends_line[:-1] & within_document).tobytes(),
                       (~self._layout.continues[self._stream] & within_document).tobytes())
        examples = []
        tokens, start = memoryview(self._stream), 0
        # A [SEP] at the beginning of an example separates nothing; skip it.
        while len(tokens) - start >= min_tokens:
            start += marks.separators[start]
            if len(tokens) - start < min_tokens:
                break
            first, second = self._segments(start, len(tokens), marks)
            examples.append(self._layout.example(tokens[first], tokens[second]))
            start = second.stop
        # Keep the rest for the next lines.
        self._stream = self._stream[start:]
        self._line_ends = self._line_ends[self._line_ends > start] - start
        return examples

    def _segments(self, start: int, limit: int, marks: "_Marks") -> tuple[slice, slice]:
        """Returns the two segments of the example that begins at `start`."""
        layout = self._layout
        # One segment, or two at a [SEP] of the stream: [CLS] and the last [SEP] are added.
        end = min(limit, start + layout.max_seq_length - 2)
        single = self._generator.random() < layout.single_segment_rate or end - start < 2
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


class _Marks(typing.NamedTuple):
    """Positions in a stream: one byte per token, 1 or 0."""

    separators: bytes  # [SEP] between documents.
    line_ends: bytes  # First tokens of lines, except after a [SEP].
    word_starts: bytes  # First pieces of words, except after a [SEP].


def _nearest(marks: bytes, low: int, middle: int, high: int) -> int:
    """Returns the mark in [low, high) that is nearest to `middle`, the left one of two; or -1."""
    # The nearest marks at both sides, -1 for none.
    before, after = marks.rfind(1, low, middle + 1), marks.find(1, middle, high)
    if min(before, after) < 0:
        return max(before, after)
    return before if middle - before <= after - middle else after


class ReferencePacking:
    """Examples as in ELECTRA's build_pretraining_dataset.py, but every token is kept.

    Lines of one document are joined up to a target length: L, or with probability
    `short_example_rate` a random length in [5, L]. The first segment has about (target - 3) / 2
    tokens: a line that reaches this number is added with probability 1/2. The following lines are
    the second segment. A document's end ends the example.

    The reference drops tokens that do not fit. Here a line is split at a word start, and its rest
    goes to the second segment or the next example.
    """

    def __init__(self, layout: Layout, generator: random.Random):
        self._layout = layout
        self._generator = generator
        self._target = layout.max_seq_length
        self._ids = np.empty(0, layout.dtype)
        self._line_ends: list[int] = []  # Positions in the ids, as are the next two.
        self._at = 0  # End of the finished examples.
        self._known = 0  # End of the last usable line.

    def add(self, lines: TokenizedLines) -> list[Example]:
        """Takes the next lines of the text; returns the examples that are complete."""
        # Drop the tokens of finished examples, and move all positions by their number.
        used, self._at = self._at, 0
        self._known -= used
        rest = self._ids[used:]
        ends = (rest.size + lines.ends).tolist()
        self._ids = np.append(rest, lines.ids.astype(rest.dtype))
        self._line_ends = [end - used for end in self._line_ends if end > used] + ends
        self._tokens = memoryview(self._ids)
        self._word_starts = (~self._layout.continues[self._ids]).tobytes()
        examples = []
        # A document's end completes the example; otherwise it needs the target's tokens.
        for self._known, ends_document in zip(ends, lines.ends_document.tolist(), strict=True):
            while self._known - self._at >= (1 if ends_document else self._target):
                examples.append(self._next_example())
        return examples

    def finish(self) -> list[Example]:
        """Returns the remaining examples; no lines may follow."""
        examples = []
        while self._known > self._at:
            examples.append(self._next_example())
        return examples

    def _next_example(self) -> Example:
        start = self._at
        if self._generator.random() < self._layout.single_segment_rate:
            # One segment: [CLS] A [SEP].
            self._take(start + self._target - 2)
            middle = self._at
        else:
            # Segment 0: lines up to half of the target; the one that reaches it is drawn.
            goal = start + max(1, (self._target - 3) // 2)
            self._at = self._end_within_line(goal)
            while self._at < min(goal, self._known):
                end = self._line_end()
                if end >= goal and (end > start + self._target - 4
                                    or self._generator.random() >= 0.5):
                    break
                self._at = end
            middle = self._at
            self._take(start + self._target - 3)
        # Draw the target of the next example.
        self._target = self._layout.max_seq_length
        if self._generator.random() < self._layout.short_example_rate:
            self._target = self._generator.randint(MIN_SEQUENCE, self._target)
        return self._layout.example(self._tokens[start:middle], self._tokens[middle:self._at])

    def _take(self, limit: int) -> None:
        """Moves to `limit`, or to the last start of a line or a word before it."""
        start = self._at
        # Whole lines, and the words of the next line that fit, if it must be split.
        full_lines = bisect.bisect_right(self._line_ends, min(limit, self._known))
        if full_lines:
            self._at = max(start, self._line_ends[full_lines - 1])
        if self._at < min(limit, self._known):
            cut = self._end_within_line(limit)
            if self._at == start or self._word_starts[cut]:
                self._at = cut

    def _end_within_line(self, limit: int) -> int:
        """Returns the end of the current line, or where to split it if it ends past `limit`."""
        end = self._line_end()
        if end <= limit:
            return end
        word_start = self._word_starts.rfind(1, self._at + 1, limit + 1)
        return limit if word_start < 0 else word_start

    def _line_end(self) -> int:
        return self._line_ends[bisect.bisect_right(self._line_ends, self._at)]


PACKINGS = {"full": FullPacking, "reference": ReferencePacking}

"""The one chain from documents to examples, on lists of token ids.

A packing takes lines of ids and hands out examples `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]`.
Every token goes into exactly one example, in the order of the text, whatever the lengths.
"""

import bisect
import dataclasses
import random
import typing
from collections.abc import Iterator

from electra_tf.errors import UserError

SHORTEST_SEQUENCE = 5
"""[CLS] a [SEP] b [SEP]."""


class Example(typing.NamedTuple):
    """One example without padding."""

    ids: list[int]
    first_segment_length: int
    """Tokens of segment 0 with [CLS] and its [SEP]; all of them if there is one segment."""


class Packing(typing.Protocol):
    """What both packings do. Examples come out as soon as their tokens are there."""

    def add_line(self, ids: list[int]) -> Iterator[Example]:
        """Takes a line's ids, of any number, without special tokens."""

    def end_document(self) -> Iterator[Example]:
        """Says that the next line belongs to another document."""

    def finish(self) -> Iterator[Example]:
        """Hands out what is left; nothing may follow."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """What an example looks like; both packings share it."""

    max_seq_length: int
    """L."""
    cls_id: int
    sep_id: int
    continuations: frozenset[int]
    """Ids of "##" pieces: no segment begins with one where that can be avoided."""
    single_segment_rate: float = 0.1
    """Fraction of examples that get one segment only."""
    short_example_rate: float = 0.05
    """Fraction of examples that get a random shorter length; `ReferencePacking` only."""

    def example(self, first: list[int], second: list[int]) -> Example:
        """Adds the special tokens to one or two (if `second` isn't empty) segments."""
        ids = [self.cls_id, *first, self.sep_id]
        length = len(ids)
        if second:
            ids += [*second, self.sep_id]
        return Example(ids, length)

    def word_start_before(self, ids: list[int], limit: int) -> int:
        """Returns the last word start in [1, limit] of `ids`, or `limit` if there is none."""
        for position in range(min(limit, len(ids) - 1), 0, -1):
            if ids[position] not in self.continuations:
                return position
        return limit


class FullPacking:
    """Examples of exactly L tokens: documents run on, with a [SEP] between them.

    The text is one stream of tokens with a [SEP] between documents, cut every L - 2 or L - 3
    tokens; only the last example may be shorter. With probability `single_segment_rate` an example
    is one segment. Else its two segments meet

    1. at the [SEP] between two documents, the one nearest to the middle; or
    2. at a [SEP] put at the line end nearest to the middle, within the middle half; or
    3. at a [SEP] put at the word start nearest to the middle (a paragraph without such a line end).

    A [SEP] between documents that would begin an example is dropped, since the example's end
    already parts the two.
    """

    def __init__(self, layout: Layout, generator: random.Random):
        self._layout = layout
        self._generator = generator
        self._stream: list[int] = []
        self._line_ends: list[int] = []  # Ascending positions in the stream, past a line's end.

    def add_line(self, ids: list[int]) -> Iterator[Example]:
        """See `Packing`."""
        if ids:
            self._stream += ids
            self._line_ends.append(len(self._stream))
            yield from self._whole_examples(self._layout.max_seq_length - 1)

    def end_document(self) -> Iterator[Example]:
        """See `Packing`."""
        if self._stream and self._stream[-1] != self._layout.sep_id:
            self._stream.append(self._layout.sep_id)
        yield from ()

    def finish(self) -> Iterator[Example]:
        """See `Packing`."""
        if self._stream and self._stream[-1] == self._layout.sep_id:
            self._stream.pop()
        yield from self._whole_examples(1)

    def _whole_examples(self, at_least: int) -> Iterator[Example]:
        """Cuts examples while `at_least` tokens are in the stream: one more than fits, or any.

        One more, because a [SEP] right behind an example belongs to it and is dropped.
        """
        start = 0
        while len(self._stream) - start >= at_least:
            start += self._stream[start] == self._layout.sep_id
            if len(self._stream) - start < at_least:
                break
            example, taken = self._cut(start)
            start += taken
            yield example
        del self._stream[:start]
        self._line_ends = [end - start for end in self._line_ends if end > start]

    def _cut(self, start: int) -> tuple[Example, int]:
        """Returns the example that begins at `start` and how many stream tokens it took."""
        layout = self._layout
        window = self._stream[start:start + layout.max_seq_length - 2]
        ends_in_separator = window[-1] == layout.sep_id
        single = self._generator.random() < layout.single_segment_rate or len(window) < 2
        if single and not ends_in_separator:
            return layout.example(window, []), len(window)
        separators = [i for i, token in enumerate(window) if token == layout.sep_id]
        if separators and not ends_in_separator:
            at = _nearest(separators, len(window) // 2)
            return layout.example(window[:at], window[at + 1:]), len(window)
        window = window[:layout.max_seq_length - 3]
        at = self._boundary(start, window)
        return layout.example(window[:at], window[at:]), len(window)

    def _boundary(self, start: int, window: list[int]) -> int:
        """Returns where to put a [SEP] into a window without a usable one: rules 2 and 3."""
        middle, reach = len(window) // 2, len(window) // 4
        low = bisect.bisect_left(self._line_ends, start + middle - reach)
        high = bisect.bisect_right(self._line_ends, start + middle + reach)
        line_ends = [end - start for end in self._line_ends[low:high]]
        starts = [p for p in range(1, len(window)) if window[p] not in self._layout.continuations]
        for positions in (line_ends, starts):
            inner = [p for p in positions if 0 < p < len(window)
                     and self._layout.sep_id not in window[p - 1:p + 1]]
            if inner:
                return _nearest(inner, middle)
        return middle


class ReferencePacking:
    """Examples as in ELECTRA's build_pretraining_dataset.py, but nothing is thrown away.

    Lines of one document are joined up to a target length: L, or with probability
    `short_example_rate` a random length in [5, L]. The first segment aims at (target - 3) / 2
    tokens, and a line that passes it still joins with probability 1/2; the rest is the second
    segment. A document's end ends the example.

    Where the reference drops what doesn't fit and makes one segment of a long line, a line is
    split at a word start, and its rest goes to the second segment or the next example. Where the
    reference may put a later short line before an earlier long one, the order is kept.
    """

    def __init__(self, layout: Layout, generator: random.Random):
        self._layout = layout
        self._generator = generator
        self._lines: list[list[int]] = []
        self._length = 0
        self._target = layout.max_seq_length

    def add_line(self, ids: list[int]) -> Iterator[Example]:
        """See `Packing`."""
        if ids:
            self._lines.append(ids)
            self._length += len(ids)
        while self._length >= self._target:
            yield self._next_example()

    def end_document(self) -> Iterator[Example]:
        """See `Packing`."""
        while self._length:
            yield self._next_example()

    def finish(self) -> Iterator[Example]:
        """See `Packing`."""
        yield from self.end_document()

    def _next_example(self) -> Example:
        if self._generator.random() < self._layout.single_segment_rate:
            first, second = self._take(self._target - 2), []
        else:
            first = self._first_segment()
            second = self._take(self._target - 3 - len(first))
        self._length -= len(first) + len(second)
        self._draw_target()
        return self._layout.example(first, second)

    def _first_segment(self) -> list[int]:
        aim = max(1, (self._target - 3) // 2)
        room = self._target - 4
        segment = self._take_of_line(aim)
        while self._lines and len(segment) < aim:
            length = len(segment) + len(self._lines[0])
            joins = length < aim or (length <= room and self._generator.random() < 0.5)
            if not joins:
                break
            segment += self._lines.pop(0)
        return segment

    def _take(self, room: int) -> list[int]:
        """Removes up to `room` tokens from the front of the lines."""
        taken: list[int] = []
        while self._lines and len(taken) + len(self._lines[0]) <= room:
            taken += self._lines.pop(0)
        if self._lines and len(taken) < room:
            cut = self._layout.word_start_before(self._lines[0], room - len(taken))
            if not taken or self._lines[0][cut] not in self._layout.continuations:
                taken += self._take_of_line(room - len(taken))
        return taken

    def _take_of_line(self, room: int) -> list[int]:
        """Removes the first line, or as much of it as fits, up to a word start if possible."""
        line = self._lines[0]
        if len(line) <= room:
            return self._lines.pop(0)
        cut = self._layout.word_start_before(line, room)
        self._lines[0] = line[cut:]
        return line[:cut]

    def _draw_target(self) -> None:
        self._target = self._layout.max_seq_length
        if self._generator.random() < self._layout.short_example_rate:
            self._target = self._generator.randint(SHORTEST_SEQUENCE, self._target)


PACKINGS = {"full": FullPacking, "reference": ReferencePacking}


def packing_named(name: str, layout: Layout, generator: random.Random) -> Packing:
    """Returns a new packing; raises UserError for a name that is not in `PACKINGS`."""
    if name not in PACKINGS:
        raise UserError(f"--packing must be one of {', '.join(PACKINGS)}. Received: {name!r}")
    return PACKINGS[name](layout, generator)


def _nearest(positions: list[int], middle: int) -> int:
    return min(positions, key=lambda position: (abs(position - middle), position))

"""Both packings token by token, on lists: slow, and plain enough to be checked by reading.

`data_prep.packing`, which works on arrays, has to make the same examples with the same draws.
"""

import bisect
import dataclasses
import random
import typing
from collections.abc import Iterator

SHORTEST_SEQUENCE = 5


class Example(typing.NamedTuple):
    ids: list[int]
    first_segment_length: int


@dataclasses.dataclass(frozen=True)
class Layout:
    max_seq_length: int
    cls_id: int
    sep_id: int
    continuations: frozenset[int]
    single_segment_rate: float
    short_example_rate: float

    def example(self, first: list[int], second: list[int]) -> Example:
        ids = [self.cls_id, *first, self.sep_id]
        length = len(ids)
        if second:
            ids += [*second, self.sep_id]
        return Example(ids, length)

    def word_start_before(self, ids: list[int], limit: int) -> int:
        for position in range(min(limit, len(ids) - 1), 0, -1):
            if ids[position] not in self.continuations:
                return position
        return limit


def pack(packing, documents) -> list[Example]:
    """Returns the examples of documents, which are lists of lines of ids."""
    found = []
    for document in documents:
        for line in document:
            found += packing.add_line(list(line))
        found += packing.end_document()
    return found + list(packing.finish())


class FullPacking:
    """Examples of exactly L tokens: documents run on, with a [SEP] between them."""

    def __init__(self, layout: Layout, generator: random.Random):
        self._layout = layout
        self._generator = generator
        self._stream: list[int] = []
        self._line_ends: list[int] = []  # Ascending positions in the stream, past a line's end.

    def add_line(self, ids: list[int]) -> Iterator[Example]:
        if ids:
            self._stream += ids
            self._line_ends.append(len(self._stream))
            yield from self._whole_examples(self._layout.max_seq_length - 1)

    def end_document(self) -> Iterator[Example]:
        if self._stream and self._stream[-1] != self._layout.sep_id:
            self._stream.append(self._layout.sep_id)
        yield from ()

    def finish(self) -> Iterator[Example]:
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
    """Examples as in ELECTRA's build_pretraining_dataset.py, but nothing is thrown away."""

    def __init__(self, layout: Layout, generator: random.Random):
        self._layout = layout
        self._generator = generator
        self._lines: list[list[int]] = []
        self._length = 0
        self._target = layout.max_seq_length

    def add_line(self, ids: list[int]) -> Iterator[Example]:
        if ids:
            self._lines.append(ids)
            self._length += len(ids)
        while self._length >= self._target:
            yield self._next_example()

    def end_document(self) -> Iterator[Example]:
        while self._length:
            yield self._next_example()

    def finish(self) -> Iterator[Example]:
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


def _nearest(positions: list[int], middle: int) -> int:
    return min(positions, key=lambda position: (abs(position - middle), position))

"""The order of examples: a pure function of (dataset, seed, position); needs no TensorFlow.

An epoch visits the shards in an order drawn from (seed, epoch), `SHARDS_MIXED` or more at a time. A
window of bounded size takes an equal part of each of these, and its rows are shuffled completely:
a shard is one stretch of text, a window samples many stretches. The stream can be entered at any
position for the cost of one window, without replaying or saving a shuffle buffer.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

SHARDS_MIXED = 64
"""Least number of shards that a window reads from, if there are as many."""
SPECIAL = 2
"""[CLS] and the last [SEP] of a row."""
SHORTEST_ROW = 8
"""Fewest tokens of a row that is cut from a longer example."""


@dataclasses.dataclass(frozen=True)
class RowPlaces:
    """The rows that an example is cut into, and their positions.

    An example of the build's length has room for R = (built - 2) // (L - 2) rows [CLS] ... [SEP],
    which hold its text in order. The remaining (built - 2) % (L - 2) tokens (6 of 510, for 128 from
    512) are left out at the example's ends, differently in each epoch.
    """

    built: int
    """Most tokens of a stored example."""
    length: int
    """L, tokens of a row, at most `built`."""

    @property
    def rows(self) -> int:
        """R, rows of an example; 1 if nothing is cut."""
        return (self.built - SPECIAL) // (self.length - SPECIAL)

    @property
    def left_over(self) -> int:
        """Number of tokens of an example that are in none of its rows."""
        return (self.built - SPECIAL) % (self.length - SPECIAL)

    def first_tokens(self, rows: Any, draw: Any) -> Any:
        """Returns the position, int64 [n], of each row's first token after [CLS].

        `rows` int64 [n] are numbers of rows within their examples; `draw`, int64 [] and at least 0,
        decides how many of the remaining tokens precede row 0.
        """
        return 1 + draw % (self.left_over + 1) + rows * (self.length - SPECIAL)


@dataclasses.dataclass(frozen=True)
class ShuffleWindow:
    """Rows that are shuffled together, as TensorFlow shuffles by the seed (seed, rows)."""

    shards: tuple[int, ...]
    """Numbers of the shards that the window reads from."""
    part: int
    """Index of the part that is read of each shard, of `parts`; see `part_of`."""
    parts: int
    rows: int
    """Rows of all shards' parts together."""
    seed: int
    """Seed of the shuffle, 62 bits."""
    start: int
    """First row, counted after the shuffle, that belongs to the stream."""
    stop: int


def windows(sizes: Sequence[int], *, seed: int, window_rows: int, start: int, stop: int,
            rows: int = 1) -> Iterator[ShuffleWindow]:
    """Yields the windows that hold positions [start, stop) of the endless stream of rows.

    Position p is in epoch p // (rows of the dataset). `sizes` are the examples of each shard, each
    of which is cut into `rows` rows. A window has at most `window_rows` of them, give or take the
    rows of one example per shard.
    """
    epoch_size = rows * sum(sizes)
    if epoch_size == 0:
        raise ValueError("the dataset holds no examples")
    epoch = start // epoch_size
    position = epoch * epoch_size
    while position < stop:
        for window in _epoch(sizes, random.Random(f"{seed}:{epoch}"), window_rows, rows):
            first, last = max(start - position, 0), min(stop - position, window.rows)
            if first < last:
                yield dataclasses.replace(window, start=first, stop=last)
            position += window.rows
        epoch += 1


def part_of(examples: Any, part: Any, parts: Any) -> tuple[Any, Any]:
    """Returns a part's first example and one past its last; takes numbers or arrays."""
    return examples * part // parts, examples * (part + 1) // parts


def _epoch(sizes: Sequence[int], draw: random.Random, window_rows: int,
           rows: int) -> Iterator[ShuffleWindow]:
    order = draw.sample(range(len(sizes)), len(sizes))
    filling = len(sizes) * window_rows / (rows * sum(sizes))
    # Groups of consecutive shards that fill a window or more, nearly as many of them in each.
    groups = max(1, int(len(sizes) / max(SHARDS_MIXED, filling)))
    for group in range(groups):
        shards = tuple(order[slice(*part_of(len(order), group, groups))])
        parts = -(-rows * sum(sizes[shard] for shard in shards) // window_rows)
        for part in range(parts):
            ends = (part_of(sizes[shard], part, parts) for shard in shards)
            size = rows * sum(last - first for first, last in ends)
            yield ShuffleWindow(shards, part, parts, size, draw.getrandbits(62), 0, size)

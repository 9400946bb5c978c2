"""Which example comes when: a pure function of (dataset, seed, position).

An epoch visits the shards in an order drawn from (seed, epoch), `SHARDS_MIXED` or more at a time. A
window of bounded size takes an equal part of each of these, and its examples are shuffled
completely: a shard is a stretch of one book or of one encyclopedia's letter, a window is a bit of
everything. The stream can be entered at any position at the cost of one window, without replaying
or saving a shuffle buffer.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

SHARDS_MIXED = 64
"""A window has a part of at least so many shards, if there are as many."""


@dataclasses.dataclass(frozen=True)
class ShuffleWindow:
    """Examples that are shuffled together."""

    shards: tuple[int, ...]
    """Their numbers."""
    part: int
    """Which part of each shard's examples, from 0 on; see `part_of`."""
    parts: int
    """Of how many."""
    rows: int
    """In all shards' parts together."""
    seed: int
    """Of the shuffle, 62 bits."""
    start: int
    """First row, counted after the shuffle, that belongs to the stream."""
    stop: int
    """One past the last."""


def windows(sizes: Sequence[int], *, seed: int, window_rows: int, start: int, stop: int,
            rows: int = 1, stream: int = 0) -> Iterator[ShuffleWindow]:
    """Yields the windows that hold positions [start, stop) of the endless stream of rows.

    Args:
        sizes: how many examples each shard of the dataset holds, in the manifest's order.
        seed: of the run.
        window_rows: how many rows a window holds at most; it may exceed this by the rows of not
            more than one example of each of its shards.
        start: first position; position p is in epoch p // (rows of the dataset).
        stop: one past the last position.
        rows: that an example is cut into.
        stream: number of the dataset, where several are read side by side: each has an order of
            its own.
    """
    epoch_size = rows * sum(sizes)
    if epoch_size == 0:
        raise ValueError("the dataset holds no examples")
    position = (start // epoch_size) * epoch_size
    epoch = start // epoch_size
    while position < stop:
        # The first stream's draws are those of a dataset read alone.
        draw = random.Random(f"{seed}:{epoch}:{stream}" if stream else f"{seed}:{epoch}")
        for window in _epoch(sizes, draw, window_rows, rows):
            first, last = max(start - position, 0), min(stop - position, window.rows)
            if first < last:
                yield dataclasses.replace(window, start=first, stop=last)
            position += window.rows
        epoch += 1


def part_of(examples: Any, part: Any, parts: Any) -> tuple[Any, Any]:
    """Returns a part's first example and one past its last, numbers or arrays of them."""
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

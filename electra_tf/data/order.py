"""The order of examples: a pure function of (dataset, seed, position); needs no TensorFlow.

An epoch visits the shards in an order drawn from (seed, epoch), `SHARDS_MIXED` or more at a time. A
window of bounded size takes an equal part of each of these, and shuffles it completely: a shard is
one stretch of text, a window samples many. The stream can be entered at any position for the cost
of one window, without replaying or saving a shuffle buffer.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

SHARDS_MIXED = 64
"""Least number of shards that a window reads from, if there are as many."""


@dataclasses.dataclass(frozen=True)
class ShuffleWindow:
    """Examples that are shuffled together, as TensorFlow shuffles by (seed, size)."""

    shards: tuple[int, ...]
    """Numbers of the shards that the window reads from."""
    part: int
    """Index of the part that is read of each shard, of `parts`; see `part_of`."""
    parts: int
    size: int
    """Examples of all shards' parts together."""
    seed: int
    """Seed of the shuffle, 62 bits."""
    start: int
    """First example, counted after the shuffle, that belongs to the stream."""
    stop: int


def windows(sizes: Sequence[int], *, seed: int, window_examples: int, start: int,
            stop: int) -> Iterator[ShuffleWindow]:
    """Yields the windows that hold positions [start, stop) of the endless stream of examples.

    `sizes` are the examples of each shard. A window has at most `window_examples`, give or take one
    per shard.
    """
    epoch_size = sum(sizes)
    if epoch_size == 0:
        raise ValueError("the dataset holds no examples")
    epoch = start // epoch_size
    position = epoch * epoch_size
    while position < stop:
        for window in _epoch(sizes, random.Random(f"{seed}:{epoch}"), window_examples):
            first, last = max(start - position, 0), min(stop - position, window.size)
            if first < last:
                yield dataclasses.replace(window, start=first, stop=last)
            position += window.size
        epoch += 1


def part_of(examples: Any, part: Any, parts: Any) -> tuple[Any, Any]:
    """Returns a part's first example and one past its last; takes numbers or arrays."""
    return examples * part // parts, examples * (part + 1) // parts


def _epoch(sizes: Sequence[int], draw: random.Random,
           window_examples: int) -> Iterator[ShuffleWindow]:
    order = draw.sample(range(len(sizes)), len(sizes))
    filling = len(sizes) * window_examples / sum(sizes)
    # Groups of consecutive shards that fill a window or more, nearly as many of them in each.
    groups = max(1, int(len(sizes) / max(SHARDS_MIXED, filling)))
    for group in range(groups):
        shards = tuple(order[slice(*part_of(len(order), group, groups))])
        parts = -(-sum(sizes[shard] for shard in shards) // window_examples)
        for part in range(parts):
            ends = (part_of(sizes[shard], part, parts) for shard in shards)
            size = sum(last - first for first, last in ends)
            yield ShuffleWindow(shards, part, parts, size, draw.getrandbits(62), 0, size)

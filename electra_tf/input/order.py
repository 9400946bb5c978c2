"""Which example comes when: a pure function of (dataset, seed, position).

An epoch visits the shards in an order drawn from (seed, epoch). Consecutive shards make up
windows of bounded size, and the examples of a window are shuffled completely. So the stream can
be entered at any position at the cost of one window, without replaying or saving a shuffle
buffer.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence


@dataclasses.dataclass(frozen=True)
class ShardSize:
    """A shard's file name and its number of examples, or of rows cut from them."""

    name: str
    examples: int


@dataclasses.dataclass(frozen=True)
class ShuffleWindow:
    """A run of shards whose examples are shuffled together, or a part of it."""

    shards: tuple[str, ...]
    examples: int
    """In all shards together."""
    seed: int
    """Of the shuffle, 62 bits."""
    start: int
    """First example, counted after the shuffle, that belongs to the stream."""
    stop: int
    """One past the last."""


def windows(shards: Sequence[ShardSize], *, seed: int, window_examples: int, start: int,
            stop: int, stream: int = 0) -> Iterator[ShuffleWindow]:
    """Yields the windows that hold positions [start, stop) of the endless stream of examples.

    Args:
        shards: of the dataset, in the manifest's order.
        seed: of the run.
        window_examples: how many examples a window should hold; it may exceed this by not more
            than its last shard.
        start: first position; position p is in epoch p // (examples of the dataset).
        stop: one past the last position.
        stream: number of the dataset, where several are read side by side: each has an order of
            its own.
    """
    epoch_size = sum(shard.examples for shard in shards)
    if epoch_size == 0:
        raise ValueError("the dataset holds no examples")
    position = (start // epoch_size) * epoch_size
    epoch = start // epoch_size
    while position < stop:
        for window in _epoch(shards, _name(seed, epoch, stream), window_examples):
            first, last = max(start - position, 0), min(stop - position, window.examples)
            if first < last:
                yield dataclasses.replace(window, start=first, stop=last)
            position += window.examples
        epoch += 1


def _name(seed: int, epoch: int, stream: int) -> str:
    """Names the draws of an epoch; the first stream's are those of a dataset read alone."""
    return f"{seed}:{epoch}:{stream}" if stream else f"{seed}:{epoch}"


def _epoch(shards: Sequence[ShardSize], name: str,
           window_examples: int) -> Iterator[ShuffleWindow]:
    draw = random.Random(name)
    order = draw.sample(shards, len(shards))
    group: list[str] = []
    size = 0
    for index, shard in enumerate(order):
        group.append(shard.name)
        size += shard.examples
        if size >= window_examples or index == len(order) - 1:
            yield ShuffleWindow(tuple(group), size, draw.getrandbits(62), 0, size)
            group, size = [], 0

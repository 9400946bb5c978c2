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

import numpy as np

SHARDS_MIXED = 64
"""Least number of shards that a window reads from, if there are as many."""
SPECIAL = 2
"""[CLS] and the last [SEP] of a row."""
SHORTEST_ROW = 8
"""Fewest tokens of a row that is cut from a longer example."""


@dataclasses.dataclass(frozen=True)
class RowPlaces:
    """The rows that an example is cut into, and their positions.

    An example [CLS] A [SEP] B [SEP] of the build's length has room for R = (built - 2) // (L - 2)
    rows [CLS] ... [SEP], which hold its text in order. The remaining (built - 2) % (L - 2) tokens
    (6 of 510, for 128 from 512) are left out at the example's ends, differently in each epoch.
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
    """Rows that are shuffled together, by `permutation(rows, (seed, rows))`."""

    shards: tuple[int, ...]
    """Numbers of the shards that the window reads from."""
    part: int
    """Index of the part that is read of each shard; see `part_of`."""
    parts: int
    """Number of parts of each shard."""
    rows: int
    """Rows of all shards' parts together."""
    seed: int
    """Seed of the shuffle, 62 bits."""
    start: int
    """First row, counted after the shuffle, that belongs to the stream."""
    stop: int
    """One past the last such row."""


def windows(sizes: Sequence[int], *, seed: int, window_rows: int, start: int, stop: int,
            rows: int = 1) -> Iterator[ShuffleWindow]:
    """Yields the windows that hold positions [start, stop) of the endless stream of rows.

    Args:
        sizes: number of examples of each shard of the dataset, in the manifest's order.
        seed: the run's seed.
        window_rows: most rows of a window, give or take the rows of one example per shard.
        start: first position; position p is in epoch p // (rows of the dataset).
        stop: one past the last position.
        rows: rows that an example is cut into.
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


def permutation(size: int, seed: tuple[int, int]) -> list[int]:
    """Returns range(size) as `tf.random.experimental.stateless_shuffle` shuffles it.

    TensorFlow 2.20's CPU kernel is the Fisher-Yates shuffle with draws from Philox; the seed has
    two numbers of 64 bits.
    """
    # TensorFlow draws a key and a counter from the seed, under a key of its own.
    scrambled = philox(0x02461E293EC8F720, tuple(part & (1 << 64) - 1 for part in seed), 4)
    key, counter = scrambled.view("<u8").tolist()
    places = np.arange(max(0, size - 1))
    others = places + philox(key, (0, counter), len(places)) % (size - places)
    result = list(range(size))
    for place, other in enumerate(others.tolist()):
        result[place], result[other] = result[other], result[place]
    return result


def philox(key: int, counter: tuple[int, int], count: int) -> np.ndarray:
    """Returns the first words, uint32 [count], of Philox-4x32-10 (Salmon et al., SC 2011).

    The key has 64 bits, the counter a lower and an upper half of 64 bits.
    """
    half, low_bits = np.uint64(32), np.uint64(0xFFFFFFFF)
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    low = np.uint64(counter[0]) + blocks
    high = np.uint64(counter[1]) + (low < blocks).astype(np.uint64)
    state = [low & low_bits, low >> half, high & low_bits, high >> half]
    for number in range(10):
        keys = [np.uint64((part + number * step) & 0xFFFFFFFF) for part, step in (
            (key, 0x9E3779B9), (key >> 32, 0xBB67AE85))]
        first, second = state[0] * np.uint64(0xD2511F53), state[2] * np.uint64(0xCD9E8D57)
        state = [(second >> half) ^ state[1] ^ keys[0], second & low_bits,
                 (first >> half) ^ state[3] ^ keys[1], first & low_bits]
    return np.stack(state, axis=1).reshape(-1)[:count].astype(np.uint32)

"""The order of examples: a pure function of (dataset, seed, position); needs no TensorFlow.

An epoch visits the shards in an order drawn from (seed, epoch), `SHARDS_MIXED` or more at a time. A
window of bounded size takes an equal part of each of these, and its rows are shuffled completely:
a shard is a stretch of one book or of one encyclopedia's letter, a window is a bit of everything.
The stream can be entered at any position at the cost of one window, without replaying or saving a
shuffle buffer. `reader` and `pipeline` read in this order.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from electra_tf.data.mixture import SHARES, Mixture

SHARDS_MIXED = 64
"""A window has a part of at least so many shards, if there are as many."""
SPECIAL = 2
"""[CLS] and the last [SEP] of a row."""
SHORTEST_ROW = 8
"""Tokens, where examples are cut into rows."""


@dataclasses.dataclass(frozen=True)
class RowPlaces:
    """How many rows an example gives, and where they begin.

    An example [CLS] A [SEP] B [SEP] of the build's length has room for R = (built - 2) // (L - 2)
    rows [CLS] ... [SEP], which hold its text in order. What is left over, (built - 2) % (L - 2)
    tokens (6 of 510, for 128 from 512), stays out: at the example's beginning and end, another
    part in another epoch.
    """

    built: int
    """Tokens of an example as stored."""
    length: int
    """L, tokens of a row, at most `built`."""

    @property
    def rows(self) -> int:
        """R, rows of an example; 1 if nothing is cut."""
        return (self.built - SPECIAL) // (self.length - SPECIAL)

    @property
    def left_over(self) -> int:
        """Tokens of an example that are in none of its rows."""
        return (self.built - SPECIAL) % (self.length - SPECIAL)

    def first_tokens(self, rows: Any, draw: Any) -> Any:
        """Returns the position, int64 [n], of each row's first token after [CLS].

        Args:
            rows: int64 [n], number of the row within its example.
            draw: int64 [], 0 or more; decides how much of the rest is before the first row.
        """
        return 1 + draw % (self.left_over + 1) + rows * (self.length - SPECIAL)


@dataclasses.dataclass(frozen=True)
class ShuffleWindow:
    """Rows that are shuffled together: by `permutation(rows, (seed, rows))`."""

    shards: tuple[int, ...]
    """Their numbers."""
    part: int
    """Which part of each shard's examples, from 0 on; see `part_of`."""
    parts: int
    """Number of parts."""
    rows: int
    """In all shards' parts together."""
    seed: int
    """Seed of the shuffle, 62 bits."""
    start: int
    """First row, counted after the shuffle, that belongs to the stream."""
    stop: int
    """One past the last."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """The order of all rows of a run.

    Of several directories each has an endless stream of its own, epoch after epoch. Every block of
    `SHARES` rows takes as many from each as its share says, in an order drawn from (seed, block).
    """

    records: Mixture
    places: RowPlaces
    seed: int
    window_examples: int
    """Rows of a window at most; several directories divide them by share."""

    def blocks(self, start: int, stop: int) -> range:
        """Returns the numbers of the blocks that hold rows [start, stop)."""
        return range(start // SHARES, -(-stop // SHARES))

    @property
    def members(self) -> np.ndarray:
        """Number of a directory for every row of a block, int64 [SHARES], before its shuffle.

        Block b is shuffled by `permutation(SHARES, (seed, b))`.
        """
        shares = [source.share for source in self.records.sources]
        return np.repeat(np.arange(len(shares)), shares)

    def streams(self, start: int, stop: int) -> list[Iterator[ShuffleWindow]]:
        """Returns the windows to read of every directory.

        They hold the rows [start, stop) of the run if there is one directory, and those of the
        `blocks` otherwise.
        """
        blocks, sources = self.blocks(start, stop), self.records.sources
        spans = [(start, stop)] if len(sources) == 1 else [
            (blocks.start * source.share, blocks.stop * source.share) for source in sources]
        return [windows([examples for _, examples in source.shards("train")], seed=self.seed,
                        window_rows=-(-self.window_examples * source.share // SHARES),
                        start=first, stop=last, rows=self.places.rows, stream=number)
                for number, (source, (first, last)) in enumerate(zip(sources, spans, strict=True))]


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


def permutation(size: int, seed: tuple[int, int]) -> list[int]:
    """Returns what `tf.random.experimental.stateless_shuffle` makes of range(size).

    Fisher and Yates' shuffle with Philox's draws, as TensorFlow 2.20's CPU kernels have them.

    Args:
        size: how many.
        seed: two numbers of 64 bits.
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
    """Returns the first words of a stream of Philox-4x32-10 (Salmon et al., SC 2011).

    Args:
        key: 64 bits.
        counter: its lower and its upper 64 bits; what is carried over from the lower ones counts.
        count: how many words.

    Returns:
        uint32 [count].
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

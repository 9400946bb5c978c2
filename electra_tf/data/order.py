"""The order of examples: a pure function of (dataset, seed, position); needs no TensorFlow.

An epoch visits the shards in an order drawn from (seed, epoch), `SHARDS_MIXED` or more at a time. A
window of bounded size takes an equal part of each of these, and its rows are shuffled completely:
a shard is one stretch of text, a window samples many stretches. The stream can be entered at any
position for the cost of one window, without replaying or saving a shuffle buffer. `reader` and
`pipeline` read in this order.
"""

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

SHARES = 10_000
"""Rows of a block, in which every directory has a fixed number of rows."""
SHARDS_MIXED = 64
"""Least number of shards that a window reads from, if there are as many."""
SPECIAL = 2
"""[CLS] and the last [SEP] of a row."""
SHORTEST_ROW = 8
"""Fewest tokens of a row that is cut from a longer example."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """One directory of records, as its readers need it."""

    shards: Mapping[str, Sequence[tuple[str, int]]]
    """Path and number of examples of every shard of "train" and of "eval", in order."""
    share: int
    """Training rows of this directory among `SHARES`, at least 1."""

    def examples(self, split: str) -> int:
        """Returns the number of examples of "train" or "eval"."""
        return sum(examples for _, examples in self.shards[split])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Records:
    """The directories that a run reads, in an order that affects the order of examples."""

    sources: tuple[Source, ...]
    max_seq_length: int
    """Most tokens of an example."""
    token_bytes: int
    """Bytes of a stored id, 2 or 4."""
    vocab_size: int
    """Ids are below it."""

    def examples(self, split: str) -> int:
        """Returns the number of examples of "train" or "eval" in all directories."""
        return sum(source.examples(split) for source in self.sources)


@dataclasses.dataclass(frozen=True)
class RowPlaces:
    """The number of rows that an example is cut into, and their positions.

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

        Args:
            rows: int64 [n], number of the row within its example.
            draw: int64 [], 0 or more; decides how many of the remaining tokens precede row 0.
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """The order of all rows of a run.

    Each directory has its own endless stream, epoch after epoch. With several directories, every
    block of `SHARES` rows takes each one's share of rows, in an order drawn from (seed, block).
    """

    records: Records
    places: RowPlaces
    seed: int
    window_examples: int
    """Most rows of a window; several directories divide them by share."""

    def blocks(self, start: int, stop: int) -> range:
        """Returns the numbers of the blocks that hold rows [start, stop)."""
        return range(start // SHARES, -(-stop // SHARES))

    @property
    def members(self) -> np.ndarray:
        """Directory's number of every row of a block, int64 [SHARES].

        `permutation(SHARES, (seed, b))` shuffles block b.
        """
        shares = [source.share for source in self.records.sources]
        return np.repeat(np.arange(len(shares)), shares)

    def streams(self, start: int, stop: int) -> list[Iterator[ShuffleWindow]]:
        """Returns every directory's windows.

        One directory's windows hold rows [start, stop) of the run; those of several directories
        hold all rows of the `blocks`.
        """
        blocks, sources = self.blocks(start, stop), self.records.sources
        spans = [(start, stop)] if len(sources) == 1 else [
            (blocks.start * source.share, blocks.stop * source.share) for source in sources]
        return [windows([examples for _, examples in source.shards["train"]], seed=self.seed,
                        window_rows=-(-self.window_examples * source.share // SHARES),
                        start=first, stop=last, rows=self.places.rows, stream=number)
                for number, (source, (first, last)) in enumerate(zip(sources, spans, strict=True))]


def windows(sizes: Sequence[int], *, seed: int, window_rows: int, start: int, stop: int,
            rows: int = 1, stream: int = 0) -> Iterator[ShuffleWindow]:
    """Yields the windows that hold positions [start, stop) of the endless stream of rows.

    Args:
        sizes: number of examples of each shard of the dataset, in the manifest's order.
        seed: the run's seed.
        window_rows: most rows of a window, give or take the rows of one example per shard.
        start: first position; position p is in epoch p // (rows of the dataset).
        stop: one past the last position.
        rows: rows that an example is cut into.
        stream: number of the dataset among those read together; each has its own order.
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

    TensorFlow 2.20's CPU kernel is the Fisher-Yates shuffle with draws from Philox.

    Args:
        size: number of elements.
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
        counter: lower and upper 64 bits of the counter.
        count: number of words.

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

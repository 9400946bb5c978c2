"""A directory of records: its shards, the order of its examples, and the bytes of one.

The order is a pure function of (dataset, seed, position). An epoch visits the shards in an order
drawn from (seed, epoch), `SHARDS_MIXED` or more at a time. A shuffle buffer takes an equal part of
each of these shards, which are consecutive text, and shuffles it completely. Reading can begin at
any position for the cost of one buffer. The module does not need TensorFlow.
"""

import dataclasses
import functools
import pathlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from electra_tf.core.errors import UserError

SPLITS = ("train", "eval")
NonNegative = Annotated[int, Ge(0)]
SHARDS_MIXED = 64  # Least number of shards that a buffer reads from, if there are as many.
ID_DTYPES = {2: np.dtype("<u2"), 4: np.dtype("<i4")}
"""Bytes of a stored id (`manifest.token_bytes_for`) -> its type."""
_BEFORE_IDS = re.compile(rb"""
    \nN \nN \n\x14first_segment_length \x12N \x1aN \nN (?P<boundary>N)
    \nN \n\x03ids                       \x12N \nN   \nN
    """.replace(b"N", rb"[\x80-\xff]*[\x00-\x7f]"), re.DOTALL | re.VERBOSE)
"""The bytes that `_before_ids` returns: each field's tag, then N, its size or value (`_number`)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
    """One TFRecord file."""

    name: str  # File name within the directory.
    split: Literal["train", "eval"]
    examples: NonNegative
    tokens: NonNegative  # Tokens of all examples, with special tokens and without padding.
    bytes: NonNegative
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Records:
    """A directory of records, as its manifest describes it."""

    data_dir: pathlib.PurePath  # A `core.storage.Path`.
    max_seq_length: int  # Most tokens of an example.
    packing: str  # "full" or "reference"; with "full" only a shard's last example is shorter.
    token_bytes: int  # Bytes of one stored id: 2 or 4.
    vocab_size: int  # V; ids are below it.
    shards: Mapping[str, tuple[Shard, ...]]  # The shards of "train" and of "eval", in order.
    fingerprint: str
    """Hexadecimal sha256 over the examples, independent of the directory's location."""

    def paths(self, split: str) -> list[str]:
        """Returns the path of every shard of "train" or "eval", in order."""
        return [str(self.data_dir / shard.name) for shard in self.shards[split]]

    def __str__(self) -> str:
        return str(self.data_dir)


def misfit(path: pathlib.PurePath, problem: str) -> UserError:
    """Returns the error for a shard whose content contradicts its manifest."""
    return UserError(f"{path} isn't what manifest.json says: {problem}; restore the file, or build "
                     "the records again: `python -m data_prep.build_pretraining_data --overwrite` "
                     "with the flags that built them.")


@dataclasses.dataclass(frozen=True)
class ShuffleBuffer:
    """Examples that are shuffled together, as TensorFlow shuffles by (seed, size)."""

    shards: tuple[int, ...]  # Numbers of the shards that the buffer reads from.
    part: int  # Index of the part that is read of each shard, of `parts`; see `part_of`.
    parts: int
    size: int  # Examples of all shards' parts together.
    seed: int  # Seed of the shuffle, 62 bits.
    start: int  # First example, counted after the shuffle, that belongs to the stream.
    stop: int


def shuffle_buffers(sizes: Sequence[int], *, seed: int, buffer_examples: int, start: int,
                    stop: int) -> Iterator[ShuffleBuffer]:
    """Yields the buffers that hold positions [start, stop) of the endless stream of examples.

    `sizes` are the numbers of examples of the shards. A buffer has at most `buffer_examples`, plus
    one per shard at most.
    """
    # The epoch of the first position, and the position of that epoch's beginning.
    epoch_size = sum(sizes)
    if epoch_size == 0:
        raise ValueError("the dataset holds no examples")
    epoch = start // epoch_size
    position = epoch * epoch_size
    while position < stop:
        # Buffers before `start` are skipped, the first and the last one are cut.
        for buffer in _epoch_buffers(sizes, random.Random(f"{seed}:{epoch}"), buffer_examples):
            begin, end = max(start - position, 0), min(stop - position, buffer.size)
            if begin < end:
                yield dataclasses.replace(buffer, start=begin, stop=end)
            position += buffer.size
        epoch += 1


def part_of(examples: Any, part: Any, parts: Any) -> tuple[Any, Any]:
    """Returns a part's first example and one past its last; takes numbers or arrays."""
    return examples * part // parts, examples * (part + 1) // parts


def _epoch_buffers(sizes: Sequence[int], rng: random.Random,
                   buffer_examples: int) -> Iterator[ShuffleBuffer]:
    # An order of all shards, and the number of shards that fill a buffer.
    order = rng.sample(range(len(sizes)), len(sizes))
    filling = len(sizes) * buffer_examples / sum(sizes)

    # Groups of consecutive shards of nearly equal numbers, each of which fills a buffer or more.
    groups = max(1, int(len(sizes) / max(SHARDS_MIXED, filling)))
    for group in range(groups):
        shards = tuple(order[slice(*part_of(len(order), group, groups))])
        # Each buffer of a group takes an equal part of every shard in it.
        parts = -(-sum(sizes[shard] for shard in shards) // buffer_examples)
        for part in range(parts):
            ends = (part_of(sizes[shard], part, parts) for shard in shards)
            size = sum(last - first for first, last in ends)
            yield ShuffleBuffer(shards, part, parts, size, rng.getrandbits(62), 0, size)


def serialize_example(ids: bytes, first_segment_length: int, token_bytes: int) -> bytes:
    """Returns one example as a serialized `tf.train.Example`.

    `ids` are the tokens with [CLS] and [SEP], in one of `ID_DTYPES`; `first_segment_length` of them
    are the first segment's. Raises `ValueError` unless that is 1 or more.
    """
    _check_boundary(first_segment_length, len(ids) // token_bytes)
    return _before_ids(first_segment_length, len(ids)) + ids


def overhead_bytes(length: int, token_bytes: int) -> int:
    """Returns a TFRecord's bytes besides the ids, for `length` tokens that are one segment."""
    return 16 + len(_before_ids(length, length * token_bytes))


def stored_ids(serialized: bytes, token_bytes: int) -> tuple[np.ndarray, int]:
    """Returns an example's ids and first segment's length; `ValueError` for other bytes."""
    # The pattern finds the boundary; writing the bytes again checks all sizes in them.
    match = _BEFORE_IDS.match(serialized)
    if match:
        boundary = sum((byte & 127) << 7 * index for index, byte in enumerate(match["boundary"]))
        size = len(serialized) - match.end()
        if match[0] == _before_ids(boundary, size) and size % token_bytes == 0:
            _check_boundary(boundary, size // token_bytes)
            return np.frombuffer(serialized, ID_DTYPES[token_bytes], offset=match.end()), boundary
    raise ValueError(f"{len(serialized)} bytes are not an example of {token_bytes}-byte ids")


def checked_ids(serialized: bytes, records: Records) -> np.ndarray:
    """Returns the ids of `stored_ids`; raises `ValueError` also for too many or unknown ones."""
    ids, _ = stored_ids(serialized, records.token_bytes)
    if len(ids) > records.max_seq_length:
        raise ValueError(f"ids has {len(ids)} tokens; max_seq_length is {records.max_seq_length}")
    unknown = ids[(ids < 0) | (ids >= records.vocab_size)]
    if unknown.size:
        raise ValueError(f"ids has {unknown[0]}, which isn't in the vocabulary of "
                         f"{records.vocab_size:,} tokens")
    return ids


def _check_boundary(first_segment_length: int, length: int) -> None:
    if not 1 <= first_segment_length <= length:
        raise ValueError(f"first_segment_length must be in [1, {length}]. "
                         f"Received: {first_segment_length}")


@functools.lru_cache(maxsize=1 << 14)
def _before_ids(first_segment_length: int, size: int) -> bytes:
    """Returns all bytes of a `tf.train.Example` before the ids, its last `size` bytes.

    Deterministic serialization sorts keys. Protobuf takes 10 times as long.
    """
    # Example { features: { map entry { key, value: { list: { number or bytes } } } } }.
    boundary = (_field(1, b"first_segment_length")
                + _field(2, _field(3, _field(1, _number(first_segment_length)))))
    ids = _field(1, b"ids") + _field(2, _field(1, _field(1, b"", size), size), size)
    return _field(1, _field(1, boundary) + _field(1, ids, size), size)


def _field(number: int, content: bytes, following: int = 0) -> bytes:
    """Returns a field of a message, without the last `following` bytes of its content."""
    # Wire type 2: the field begins with its length.
    return bytes([number << 3 | 2]) + _number(len(content) + following) + content


def _number(value: int) -> bytes:
    """Returns a number in bytes of 7 bits, the lowest first; all but the last have the top bit."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])

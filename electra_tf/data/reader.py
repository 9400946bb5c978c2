"""Reads records as NumPy arrays without TensorFlow: training batches, or shards in their order.

The reader compares the checksum of every record, and holds one shuffle buffer in memory. It raises
`UserError` for a shard that is damaged or contradicts its manifest.
"""

import itertools
import os
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from electra_tf.data.example import Batch
from electra_tf.data.records import (
    SPLITS,
    Records,
    Shard,
    checked_ids,
    misfit,
    part_of,
    shuffle_buffers,
)
from electra_tf.platform.storage import Path

TOKENS_TOGETHER = 1 << 18
"""Positions of the examples that are read together: some megabytes."""
_HEADER, _FOOTER = struct.Struct("<Q4x"), struct.Struct("<I")
"""A record's length with that number's checksum, and the content's checksum."""
_MOST_BYTES = 4 * (1 << 16) + 256
"""Largest size of a record."""


class _Damaged(Exception):
    """A record is cut off, or its checksum is wrong."""


class _Row(NamedTuple):
    ids: np.ndarray
    boundary: int  # Number of tokens of the first segment.


def training_batches(records: Records, *, pad_id: int, seed: int, buffer_examples: int,
                     batch_size: int, first_step: int, last_step: int) -> Iterator[Batch]:
    """Yields the global batches of steps [first_step, last_step), those of `pipeline`."""
    rows = _rows(records, seed, buffer_examples, first_step * batch_size, last_step * batch_size)
    while batch := list(itertools.islice(rows, batch_size)):
        yield _stacked(batch, records.max_seq_length, pad_id)


def examples(records: Records, shard: Shard, *, pad_id: int, start: int = 0,
             stop: int | None = None) -> Iterator[Batch]:
    """Yields examples [start, stop) of a shard in order, `TOKENS_TOGETHER` positions in a batch."""
    for rows in _examples(records, shard, start, shard.examples if stop is None else stop):
        yield _stacked(rows, records.max_seq_length, pad_id)


def require_whole(records: Records) -> None:
    """Reads all shards; raises `UserError` that names the first record that can't be used."""
    for shard in (shard for split in SPLITS for shard in records.shards[split]):
        for _ in examples(records, shard, pad_id=0):
            pass


def _rows(records: Records, seed: int, buffer_examples: int, start: int,
          stop: int) -> Iterator[_Row]:
    shards = records.shards["train"]
    for buffer in shuffle_buffers([shard.examples for shard in shards], seed=seed,
                                  buffer_examples=buffer_examples, start=start, stop=stop):
        stored = [example for shard in (shards[number] for number in buffer.shards)
                  for some in _examples(records, shard, *part_of(
                      shard.examples, buffer.part, buffer.parts))
                  for example in some]
        order = permutation(buffer.size, (buffer.seed, buffer.size))
        yield from (stored[number] for number in order[buffer.start:buffer.stop])


def _examples(records: Records, shard: Shard, start: int, stop: int) -> Iterator[list[_Row]]:
    """Yields examples [start, stop) of a shard, checked, some thousand together."""
    path, found = records.data_dir / shard.name, start
    together = max(1, TOKENS_TOGETHER // records.max_seq_length)
    try:
        with path.open("rb") as file:
            wanted = itertools.islice(_records(file, start), stop - start)
            while some := list(itertools.islice(wanted, together)):
                contents, checksums = zip(*some, strict=True)
                # `_row` names a record too short for an example, and for `_checksums`.
                if min(map(len, contents)) >= 4 and (_checksums(contents) != checksums).any():
                    raise _Damaged
                yield [_row(content, found + number, path, records)
                       for number, content in enumerate(contents)]
                found += len(contents)
    except OSError as error:
        raise misfit(path, f"it can't be read ({error.strerror})") from error
    except _Damaged as error:
        raise misfit(path, "a record is cut off or changed "
                     f"(record {found:,} or a later one)") from error
    if found < stop:
        raise misfit(path, f"it has {found:,} examples instead of {shard.examples:,}")


def _row(content: bytes, number: int, path: Path, records: Records) -> _Row:
    try:
        return _Row(*checked_ids(content, records))
    except ValueError as error:
        raise misfit(path, f"record {number:,}: {error}") from error


def _stacked(rows: Sequence[_Row], length: int, pad_id: int) -> Batch:
    """Pads rows to `length`."""
    positions = np.arange(length)
    valid = positions < np.array([len(row.ids) for row in rows])[:, np.newaxis]
    ids = np.full(valid.shape, pad_id, np.int32)
    ids[valid] = np.concatenate([row.ids for row in rows])
    second = valid & (positions >= np.array([row.boundary for row in rows])[:, np.newaxis])
    return Batch(ids=ids, valid=valid, segment_ids=second.astype(np.int32))


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


def _records(file: BinaryIO, start: int) -> Iterator[tuple[bytes, int]]:
    """Yields content and checksum of the TFRecords from number `start`."""
    for number in itertools.count():
        header = file.read(_HEADER.size)
        if not header:
            return
        size = _HEADER.unpack(header)[0] if len(header) == _HEADER.size else _MOST_BYTES + 1
        if size > _MOST_BYTES:
            raise _Damaged
        if number < start:
            file.seek(size + _FOOTER.size, os.SEEK_CUR)
            continue
        content, footer = file.read(size), file.read(_FOOTER.size)
        if len(footer) < _FOOTER.size:
            raise _Damaged
        yield content, *_FOOTER.unpack(footer)


def _checksums(contents: Sequence[bytes]) -> np.ndarray:
    """Returns the masked CRC-32C of TFRecords, uint32 [n]; contents are computed side by side."""
    sizes = np.array([len(content) for content in contents])
    places, begins = np.arange(sizes.max()), (sizes.max() - sizes)[:, np.newaxis]
    padded = np.zeros([len(contents), len(places)], np.uint8)
    padded[places >= begins] = np.frombuffer(b"".join(contents), np.uint8)
    # With the bits of the first four bytes inverted, zeros before them do not change the result.
    padded[(places >= begins) & (places < begins + 4)] ^= 255
    state = np.zeros(len(contents), np.uint32)
    for column in np.ascontiguousarray(padded.T):
        state = _CRC_OF_BYTE[(state ^ column) & 255] ^ state >> 8
    state = ~state
    return (state >> 15 | state << 17) + np.uint32(0xA282EAD8)


def _crc_of_byte() -> np.ndarray:
    """Returns the remainder of every byte by Castagnoli's polynomial, uint32 [256]."""
    found = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        found = np.where(found & 1, found >> 1 ^ 0x82F63B78, found >> 1).astype(np.uint32)
    return found


_CRC_OF_BYTE = _crc_of_byte()

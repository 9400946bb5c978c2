"""Reads the records of a TFRecord file and compares their checksums; needs no TensorFlow."""

import itertools
import os
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np

from electra_tf.platform.storage import Path

_HEADER, _FOOTER = struct.Struct("<Q4x"), struct.Struct("<I")
"""A record's length with that number's checksum, and the content's checksum."""
_MOST_BYTES = 4 * (1 << 16) + 256
"""Largest size of a record."""
_CUT_OFF = "a record is cut off or changed"


def read(path: Path, start: int, stop: int, together: int) -> Iterator[list[bytes]]:
    """Yields records [start, stop) in lists of at most `together`, fewer if the file ends.

    Raises:
        ValueError: a record is cut off or its checksum is wrong.
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        records = itertools.islice(_records(file, start), stop - start)
        while some := list(itertools.islice(records, together)):
            contents, checksums = zip(*some, strict=True)
            if (_checksums(contents) != checksums).any():
                raise ValueError(_CUT_OFF)
            yield list(contents)


def _records(file: BinaryIO, start: int) -> Iterator[tuple[bytes, int]]:
    """Yields content and checksum of the TFRecords from one on; ValueError if one is cut off."""
    for number in itertools.count():
        header = file.read(_HEADER.size)
        if not header:
            return
        size = _HEADER.unpack(header)[0] if len(header) == _HEADER.size else _MOST_BYTES + 1
        if size > _MOST_BYTES:
            raise ValueError(_CUT_OFF)
        if number < start:
            file.seek(size + _FOOTER.size, os.SEEK_CUR)
            continue
        content, footer = file.read(size), file.read(_FOOTER.size)
        if len(footer) < _FOOTER.size:
            raise ValueError(_CUT_OFF)
        yield content, *_FOOTER.unpack(footer)


def _checksums(contents: Sequence[bytes]) -> np.ndarray:
    """Returns CRC-32C as TFRecords have it, uint32 [n], all contents side by side."""
    sizes = np.array([len(content) for content in contents])
    places, begins = np.arange(sizes.max()), (sizes.max() - sizes)[:, np.newaxis]
    table = np.zeros([len(contents), len(places)], np.uint8)
    table[places >= begins] = np.frombuffer(b"".join(contents), np.uint8)
    # All bits of the first four bytes are inverted: then zeros before them change nothing.
    table[(places >= begins) & (places < begins + 4)] ^= 255
    state = np.zeros(len(contents), np.uint32)
    for column in np.ascontiguousarray(table.T):
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

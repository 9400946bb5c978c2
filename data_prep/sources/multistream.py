"""bz2 files of many streams, unpacked several at a time: Wikipedia's "multistream" dumps."""

import bz2
import collections
import concurrent.futures
import dataclasses
import functools
import itertools
import re
import typing
from collections.abc import Iterator

from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores
from electra_tf.platform.storage import Path

_MOST_THREADS = 16
_CHUNK = 1 << 20
_LONGEST_STREAM = 256 << 20
"""Bytes, stored and unpacked; a stream of Wikipedia's has 100 pages, about 1 MB."""
_MARK = re.compile(rb"BZh[1-9]1AY&SY")
"""Begins a stream that isn't empty. Compressed bytes hold it by chance once in 10^23."""


@dataclasses.dataclass(frozen=True)
class Stream:
    """One stream of a file."""

    start: int
    """Where it begins in the file."""
    end: int
    content: bytes = b""
    """Unpacked."""
    damage: str = ""
    """What is wrong if it can't be unpacked; `content` is then empty."""


def unpacked_streams(path: Path) -> Iterator[Stream]:
    """Yields the streams of a file in order, decompressed in threads; bz2 releases the GIL.

    Raises:
        UserError: a stream is too long for the memory.
        OSError: the file cannot be read.
    """
    threads = min(usable_cores(), _MOST_THREADS)
    waiting: collections.deque[concurrent.futures.Future] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool, path.open("rb") as file:
        try:
            for start, stored in _stored_streams(file, path):
                waiting.append(pool.submit(_unpack, start, stored))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _stored_streams(file: typing.BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields where streams begin, and their bytes."""
    start, held = 0, b""
    for chunk in iter(functools.partial(file.read, _CHUNK), b""):
        held += chunk
        places = [0, *(mark.start() for mark in _MARK.finditer(held, 1))]
        for begin, end in itertools.pairwise(places):
            yield start + begin, held[begin:end]
        start, held = start + places[-1], held[places[-1]:]
        if len(held) > _LONGEST_STREAM:
            raise UserError(f"{path}: the stream at byte {start} has more than {_LONGEST_STREAM} "
                            "bytes; rename a file that is no multistream dump.")
    yield start, held


def _unpack(start: int, stored: bytes) -> Stream:
    end, size = start + len(stored), 0
    pieces: list[bytes] = []
    try:
        while stored:  # An empty stream may follow.
            decompressor = bz2.BZ2Decompressor()
            pieces.append(decompressor.decompress(stored, _LONGEST_STREAM - size))
            size += len(pieces[-1])
            if size >= _LONGEST_STREAM:
                return Stream(start, end, damage=f"more than {_LONGEST_STREAM} bytes come of it")
            if not decompressor.eof:
                return Stream(start, end, damage="it is cut short")
            stored = decompressor.unused_data.lstrip(b"\0")
    except OSError as error:
        return Stream(start, end, damage=str(error))
    return Stream(start, end, b"".join(pieces))

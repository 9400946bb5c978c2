"""bz2 files of many streams, unpacked several at a time: Wikipedia's "multistream" dumps.

An index beside the dump says where its streams begin, one line per page, `offset:page id:title`.
"""

import bz2
import collections
import concurrent.futures
import dataclasses
import itertools
import os
from collections.abc import Iterator

from data_prep.sources import compression
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

_MOST_THREADS = 16
_LONGEST_STREAM = 256 << 20
"""Bytes, stored and unpacked; a stream of Wikipedia's has 100 pages, about 1 MB."""

_MOST_DIGITS = 18


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


def index_of(path: Path) -> Path | None:
    """Returns the index beside a dump, or None if there is none.

    Args:
        path: such as enwiki-latest-pages-articles-multistream.xml.bz2, whose index is
            enwiki-latest-pages-articles-multistream-index.txt.bz2, or a numbered part of it
            (-multistream1.xml-p1p41242.bz2 with -multistream-index1.txt-p1p41242.bz2).
    """
    if "-multistream" not in path.name or path.suffix != ".bz2":
        return None
    before, after = path.name.split("-multistream", 1)
    packed = f"{before}-multistream-index{after.replace('.xml', '.txt', 1)}"
    for name in (packed, packed.removesuffix(".bz2")):
        if (path.parent / name).exists():
            return path.parent / name
    return None


def stream_starts(index: Path) -> list[int]:
    """Returns where the streams of a dump begin, as its index says, and 0.

    Raises:
        UserError: the index is damaged.
    """
    starts = {0}
    whole_lines = 0
    try:
        with index.open("rb") as raw:
            for line in compression.opened(raw, index.name):
                starts.add(_offset(line))
                whole_lines += 1
    except (ValueError, OSError, *compression.CORRUPT) as error:
        if isinstance(error, OSError) and not compression.is_damage(error):
            raise compression.cannot_read(index, error) from error
        raise UserError(f"{index} is damaged behind line {whole_lines} ({shown(str(error))}); get "
                        "a whole copy, or remove it: without it the dump is read in one thread."
                        ) from error
    return sorted(starts)


def _offset(line: bytes) -> int:
    number = line.partition(b":")[0]
    if not (number.isdigit() and len(number) <= _MOST_DIGITS):
        raise ValueError(f"no offset: {line[:80]!r}")
    return int(number)


def unpacked_streams(path: Path, starts: list[int]) -> Iterator[Stream]:
    """Yields the streams of a file in order, unpacked in threads: bz2 leaves Python's lock alone.

    Args:
        path: the file.
        starts: where its streams begin, rising, 0 first.

    Raises:
        UserError: the file has no stream where one should begin, or it is longer than any.
        OSError: it can't be read.
    """
    size = path.stat().st_size
    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool, path.open("rb") as file:
        waiting: collections.deque[concurrent.futures.Future] = collections.deque()
        try:
            for start, end in itertools.pairwise([*starts, max(size, starts[-1])]):
                if end - start > _LONGEST_STREAM or start >= size:
                    raise UserError(f"{path} doesn't have the streams that its index says (one "
                                    f"from byte {start} to {end}); get both from the same dump, "
                                    "or remove the index.")
                file.seek(start)
                waiting.append(pool.submit(_unpack, start, end, file.read(end - start)))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _unpack(start: int, end: int, stored: bytes) -> Stream:
    pieces: list[bytes] = []
    size = 0
    try:
        while stored:  # The last range may hold two streams: of pages, and of the closing tag.
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

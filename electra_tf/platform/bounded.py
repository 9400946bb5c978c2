"""Files read up to a limit, which keeps an endless file from filling the memory."""

import contextlib
import errno
import gzip
import itertools
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

MIB = 1 << 20


def read_bytes(path: Path, most: int) -> bytes:
    """Returns a file's content.

    Raises:
        UserError: the file has more than `most` bytes, which no file of its kind has.
        OSError: it can't be read, or the path is not a file name.
    """
    with _opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(f"{path} is larger than {_size(most)}, which no file of its kind is; name "
                        "the right file.")
    return content


def read_lines(path: Path, *, longest: int, most: int) -> Iterator[tuple[int, bytes]]:
    r"""Yields the lines of a file that may be larger than the memory.

    Args:
        path: decompressed if it ends in ".gz".
        longest: bytes of the longest line, its end included.
        most: bytes of the largest file, decompressed.

    Yields:
        The line's number, from 1, and the line with its "\n".

    Raises:
        UserError: the file can't be read, is damaged gzip, or exceeds a limit.
    """
    size = 0
    try:
        with _opened(path) as raw, (gzip.open(raw) if path.suffix == ".gz"
                                    else contextlib.nullcontext(raw)) as file:
            for number in itertools.count(1):
                line = file.readline(longest + 1)
                size += len(line)
                if len(line) > longest or size > most:
                    limit = (f"a line of more than {_size(longest)}" if len(line) > longest
                             else f"more than {_size(most)} unpacked")
                    raise UserError(f"{path}:{number}: {limit}, which no file of its kind has; "
                                    "name the right file.")
                if not line:
                    return
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not gzip, or damaged: {error}; get the file again, or leave "
                        ".gz out of its name if it isn't packed.") from error
    except OSError as error:
        raise cannot_read(path, error) from error


def cannot_read(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a file that can't be read."""
    return UserError(f"cannot read {path}: {error.strerror or error}.")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except ValueError as error:  # A NUL character.
        raise OSError(errno.EINVAL, f"not a file name: {shown(str(path))}") from error


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // 1024} KiB"

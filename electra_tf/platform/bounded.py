"""Files read up to a limit: an endless one, or one of another kind, can't fill the memory."""

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

    Args:
        path: of the file.
        most: bytes that a file of its kind can have.

    Raises:
        UserError: it has more.
        OSError: it can't be read; also where the name can't be one.
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
        path: unpacked on the way if it ends in ".gz".
        longest: bytes that a line of such a file can have, its end included.
        most: bytes that such a file can have, unpacked.

    Yields:
        The line's number, from 1, and the line with its "\n".

    Raises:
        UserError: it can't be read, isn't whole gzip, or is larger: a packed file of some KB can
            hold more than any disk.
    """
    size = 0
    try:
        with _opened(path) as raw, _unpacked(path, raw) as file:
            for number in itertools.count(1):
                line = file.readline(longest + 1)
                size += len(line)
                if len(line) > longest:
                    raise UserError(f"{path}:{number}: a line of more than {_size(longest)}, which "
                                    "no file of its kind has; name the right file.")
                if size > most:
                    raise UserError(f"{path}:{number}: more than {_size(most)} unpacked, which no "
                                    "file of its kind has; name the right file.")
                if not line:
                    return
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: not gzip, or damaged: {error}; get the file again, or leave "
                        ".gz out of its name if it isn't packed.") from error
    except OSError as error:
        raise cannot_read(path, error) from error


def cannot_read(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a file that couldn't be read."""
    return UserError(f"cannot read {path}: {error.strerror or error}.")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except ValueError as error:  # A NUL character.
        raise OSError(errno.EINVAL, f"no name of a file, {shown(str(path))}") from error


def _unpacked(path: Path, raw: BinaryIO) -> contextlib.AbstractContextManager[BinaryIO]:
    return gzip.open(raw) if path.suffix == ".gz" else contextlib.nullcontext(raw)


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // 1024} KiB"

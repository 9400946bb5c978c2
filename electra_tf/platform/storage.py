"""Paths that users give: of this machine, or URLs of file systems that TensorFlow has.

`gs://bucket/records` and the like are paths as `pathlib`'s are, with the methods that this program
uses. `tf.io.gfile` does the work, so what a training step can read or save to, every other part of
the program can too. Paths of this machine stay `pathlib.Path` and never load TensorFlow.
"""

import contextlib
import errno
import fnmatch
import glob
import io
import os
import pathlib
import re
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

from electra_tf.platform.errors import UserError

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")


class FileStatus(NamedTuple):
    """What `RemotePath.stat` tells, by the names of `os.stat_result`."""

    st_size: int
    """Bytes."""


class RemotePath(pathlib.PurePosixPath):
    """A file or directory of a file system that isn't this machine's, `scheme://host/name`.

    Methods mean what `pathlib.Path`'s mean and raise `OSError` where those do.

    Example:
        >>> shard = RemotePath("gs://bucket/records") / "train-00000.tfrecord"
        >>> str(shard), shard.name, str(shard.parent)
        ('gs://bucket/records/train-00000.tfrecord', 'train-00000.tfrecord', 'gs://bucket/records')
    """

    def __str__(self) -> str:
        scheme, *rest = self.parts
        return f"{scheme}//{'/'.join(rest)}"

    def exists(self) -> bool:
        """Tells whether a file or directory is there."""
        with _os_errors(self) as gfile:
            return gfile.exists(str(self))

    def is_dir(self) -> bool:
        """Tells whether it is a directory."""
        with _os_errors(self) as gfile:
            return gfile.isdir(str(self))

    def is_file(self) -> bool:
        """Tells whether it is a file."""
        return self.exists() and not self.is_dir()

    def stat(self) -> FileStatus:
        """Returns the file's size."""
        with _os_errors(self) as gfile:
            return FileStatus(st_size=gfile.stat(str(self)).length)

    def iterdir(self) -> "Iterator[RemotePath]":
        """Yields what a directory holds."""
        with _os_errors(self) as gfile:
            names = gfile.listdir(str(self))
        return (self / name.rstrip("/") for name in names)

    def glob(self, pattern: str) -> "Iterator[RemotePath]":
        """Yields what a directory holds under names that match; nothing if there is none."""
        if self.is_dir():
            yield from (one for one in self.iterdir() if fnmatch.fnmatch(one.name, pattern))

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Creates a directory and, whatever `parents` says, those above it."""
        if not exist_ok and self.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self))
        with _os_errors(self) as gfile:
            gfile.makedirs(str(self))

    def open(self, mode: str = "r", encoding: str | None = None) -> Any:
        """Opens the file; `mode` is "r", "w" or "a", with or without "b"; text is UTF-8."""
        if "r" not in mode:
            with _os_errors(self) as gfile:
                return gfile.GFile(str(self), mode)
        raw = io.BufferedReader(_Reader(self))
        return raw if "b" in mode else io.TextIOWrapper(raw, encoding=encoding or "utf-8")

    def read_bytes(self) -> bytes:
        """Returns the file's content."""
        with self.open("rb") as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Returns the file's content as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        """Writes the file."""
        with _os_errors(self) as gfile, gfile.GFile(str(self), "wb") as file:
            file.write(content)

    def replace(self, target: "RemotePath") -> None:
        """Renames a file; one that is there goes."""
        with _os_errors(self) as gfile:
            gfile.rename(str(self), str(target), overwrite=True)

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes a file."""
        if missing_ok and not self.exists():
            return
        with _os_errors(self) as gfile:
            gfile.remove(str(self))

    def absolute(self) -> "RemotePath":
        """Returns the path itself: a URL is never relative."""
        return self

    resolve = absolute


class _Reader(io.RawIOBase):
    """A remote file as Python's own readers (`lzma`, `gzip`, `csv`) want it."""

    def __init__(self, path: RemotePath):
        super().__init__()
        self._path = path
        with _os_errors(path) as gfile:
            self._file = gfile.GFile(str(path), "rb")
            self._size = self._file.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        with _os_errors(self._path):
            content = self._file.read(len(buffer))
        buffer[:len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        self._file.seek(start + offset)
        return start + offset

    def tell(self) -> int:
        return self._file.tell()


Path = pathlib.Path | RemotePath


def is_remote(name: str) -> bool:
    """Tells whether a path is a URL."""
    return _SCHEME.match(name) is not None


def path(name: str | os.PathLike) -> Path:
    """Returns what a user's path names.

    Raises:
        UserError: a URL of a file system that this TensorFlow doesn't have.

    Example:
        >>> path("runs/small"), path("file:///tmp/small")
        (PosixPath('runs/small'), PosixPath('/tmp/small'))
    """
    name = os.fspath(name)
    scheme = _SCHEME.match(name)
    if scheme is None:
        return pathlib.Path(name)
    if scheme[1] == "file":
        return pathlib.Path(name.removeprefix("file://"))
    import tensorflow as tf  # Only now: it takes seconds.

    known = sorted({*filter(None, map(_text, tf.io.gfile.get_registered_schemes()))} - {"file"})
    if scheme[1] not in known:
        raise UserError(f"{name}: TensorFlow has no file system for {scheme[0]} here; it has "
                        f"{', '.join(f'{one}://' for one in known)} and paths of this machine.")
    return RemotePath(name)


def require_local(place: Path, flag: str, why: str) -> pathlib.Path:
    """Returns a path of this machine; `UserError` if it is none.

    Args:
        place: what the user gave.
        flag: how, for example "--output".
        why: what can't be done elsewhere, as an end of the sentence.
    """
    if isinstance(place, RemotePath):
        raise UserError(f"{flag}={place} must be a path of this machine: {why}.")
    return place


def matching(pattern: str) -> list[Path]:
    """Returns the files that a user's pattern names, sorted; `**` is for any directories."""
    if _SCHEME.match(pattern):
        place = path(pattern)
        if isinstance(place, RemotePath):
            with _os_errors(place) as gfile:
                found = [RemotePath(name) for name in gfile.glob(pattern)]
            return sorted(one for one in found if one.is_file())
        pattern = str(place)
    names = sorted(glob.glob(pattern, recursive=True))
    return [pathlib.Path(name) for name in names if pathlib.Path(name).is_file()]


def remove_tree(directory: Path) -> None:
    """Removes a directory with all that it holds; nothing happens if there is none."""
    if isinstance(directory, RemotePath):
        with contextlib.suppress(FileNotFoundError), _os_errors(directory) as gfile:
            gfile.rmtree(str(directory))
        return
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _os_errors(place: RemotePath) -> Iterator[Any]:
    """Yields `tf.io.gfile` and turns TensorFlow's errors into the operating system's."""
    import tensorflow as tf

    codes = {tf.errors.NOT_FOUND: errno.ENOENT, tf.errors.PERMISSION_DENIED: errno.EACCES,
             tf.errors.UNAUTHENTICATED: errno.EACCES, tf.errors.ALREADY_EXISTS: errno.EEXIST,
             tf.errors.RESOURCE_EXHAUSTED: errno.ENOSPC}
    try:
        yield tf.io.gfile
    except tf.errors.OpError as error:
        code = codes.get(error.error_code, errno.EIO)
        message = os.strerror(code) if code == errno.ENOENT else " ".join(
            (error.message or os.strerror(code)).split())
        raise OSError(code, message, str(place)) from error


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name

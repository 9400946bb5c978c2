"""Paths that users give: local ones, and URLs of file systems that TensorFlow supports.

`tf.io.gfile` reads and writes `gs://bucket/records` and the like. Paths of this machine stay
`pathlib.Path` and do not load TensorFlow.
"""
# ruff: noqa: D102 - The methods of RemotePath are those of pathlib.Path.

import contextlib
import errno
import fnmatch
import glob
import hashlib
import io
import os
import pathlib
import re
import shutil
import stat
import sys
import tempfile
import types
import urllib.parse
from collections.abc import Iterator
from typing import Any, BinaryIO

from electra_tf.core.errors import UserError, shown, tensorflow_reason
from electra_tf.core.file_kinds import require_text

MIB = 1 << 20
PIPE = "-"
"""Standard input or output in place of a path."""
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
_MODEL_PAGE = re.compile(
    r"https?:/{1,2}(?:www\.)?(?:huggingface\.co|hf\.co)/(?!(?:datasets|spaces|docs)/)"
    r"([^/?#]+/[^/?#]+)(?:/(?:tree|blob|resolve)/([^/?#]+)(?:/\w+\.(?:json|safetensors|bin|h5))?)?"
    r"/?(?:[?#].*)?")
"""Address of a model on the Hub, of its list of files or of a file. Groups: OWNER/NAME, revision"""


class RemotePath(pathlib.PurePosixPath):
    """A file or directory of another file system, `scheme://host/name`, used as `pathlib.Path`.

        >>> shard = RemotePath("gs://bucket/records") / "train-00000.tfrecord"
        >>> str(shard), shard.name, str(shard.parent)
        ('gs://bucket/records/train-00000.tfrecord', 'train-00000.tfrecord', 'gs://bucket/records')
    """

    def __str__(self) -> str:
        scheme, *rest = self.parts
        return f"{scheme}//{'/'.join(rest)}"

    def exists(self) -> bool:
        return not self._is_model and _gfile(self, "exists")

    def is_dir(self) -> bool:
        return not self._is_model and _gfile(self, "isdir")

    @property
    def _is_model(self) -> bool:
        """True for the name of a model of the Hub, "hf://...", which has no files here."""
        return self.parts[0] == "hf:"

    def is_file(self) -> bool:
        return self.exists() and not self.is_dir()

    def stat(self) -> types.SimpleNamespace:
        """Returns the size in bytes and the seconds of the last change: `st_size`, `st_mtime`."""
        status = _gfile(self, "stat")
        return types.SimpleNamespace(st_size=status.length, st_mtime=status.mtime_nsec / 1e9)

    def iterdir(self) -> "Iterator[RemotePath]":
        return (self / name.rstrip("/") for name in _gfile(self, "listdir"))

    def glob(self, pattern: str) -> "Iterator[RemotePath]":
        """Yields the entries of a directory whose names match; none without a directory."""
        entries = self.iterdir() if self.is_dir() else ()
        return (entry for entry in entries if fnmatch.fnmatch(entry.name, pattern))

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Creates a directory and its parents; the arguments have no effect."""
        _gfile(self, "makedirs")

    def open(self, mode: str = "r", encoding: str = "utf-8") -> Any:
        """Opens the file; `mode` is "r", "w" or "a", with or without "b"; text is UTF-8."""
        if self._is_model:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        # TensorFlow's files write; only its reader lacks the interface that Python's readers need.
        if "r" not in mode:
            return _gfile(self, "GFile", mode)
        raw = io.BufferedReader(_Reader(self))
        return raw if "b" in mode else io.TextIOWrapper(raw, encoding=encoding)

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        with os_errors(self), self.open("wb") as file:
            file.write(content)

    def replace(self, target: "RemotePath") -> None:
        _gfile(self, "rename", str(target), overwrite=True)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.exists():
            _gfile(self, "remove")

    def resolve(self) -> "RemotePath":
        """Returns the path itself: a URL is never relative."""
        return self


class _Reader(io.RawIOBase):
    """A remote file for Python's readers such as `lzma`, `gzip` and `csv`."""

    def __init__(self, path: RemotePath):
        super().__init__()
        self._path = path
        with os_errors(path):
            self._file = _gfile(path, "GFile", "rb")
            self._file.size()  # Raises if there is no such file.
        self.tell = self._file.tell

    def readable(self) -> bool:
        return True

    seekable = readable

    def readinto(self, buffer: memoryview) -> int:
        with os_errors(self._path):
            content = self._file.read(len(buffer))
        buffer[:len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self.tell()


Path = pathlib.Path | RemotePath


def path(name: str | os.PathLike) -> Path:
    """Returns a user's path; raises `UserError` for a file system that TensorFlow does not support.

    >>> path("runs/small"), path("file:///tmp/small")
    (PosixPath('runs/small'), PosixPath('/tmp/small'))
    """
    # pathlib drops a slash of hf://, and browsers' addresses of models name the same thing.
    name = re.sub("^hf:/(?!/)", "hf://", os.fspath(name).removeprefix("file://"))
    if page := _MODEL_PAGE.fullmatch(name):
        name = "hf://" + urllib.parse.unquote("@".join(filter(None, page.groups())))
    if "\0" in name:
        raise UserError(f"a file's name must not contain NUL. Received: {shown(name)}")
    # A path of this machine, or a URL of a file system that TensorFlow knows.
    match = _SCHEME.match(name)
    if match is None:  # The shell leaves "~" in --flag=~/x.
        return pathlib.Path(os.path.expanduser(name))
    if match[1] != "hf":  # A model's name, which only `hub` reads.
        import tensorflow as tf  # It takes seconds.

        known = sorted(map(tf.compat.as_text, tf.io.gfile.get_registered_schemes()))
        if match[1] not in known:
            raise UserError(f"{name}: this TensorFlow has no file system for {match[0]}; it has "
                            f"{', '.join(f'{scheme}://' for scheme in known if scheme)}. Download "
                            "the file; a model of the Hugging Face Hub is hf://OWNER/NAME.")
    return RemotePath(name)


def utf8_path(name: str | os.PathLike) -> Path:
    """Returns a user's path as TensorFlow can write it; raises `UserError` if it isn't UTF-8."""
    if re.search("[\ud800-\udfff]", os.fspath(name)):  # As Python reads other bytes.
        raise UserError(f"{shown(name)} is not a name in UTF-8; choose another name.")
    return path(name)


def require_local(path: Path, flag: str, reason: str) -> pathlib.Path:
    """Returns the local path that `flag` gave, or raises `UserError` with the reason."""
    if isinstance(path, RemotePath):
        raise UserError(f"{flag}={path} must be a path of this machine: {reason}.")
    return path


def matching(pattern: str) -> list[Path]:
    """Returns the files that match a user's pattern, sorted; `**` matches any directories."""
    name = path(pattern)
    names = (_gfile(name, "glob") if isinstance(name, RemotePath)
             else glob.glob(str(name), recursive=True))
    matches = sorted(match for match in map(type(name), names) if match.is_file())
    if not matches and name.is_file():  # Its name has brackets.
        return [name]
    return matches


def remove_tree(directory: Path) -> None:
    """Removes a directory with its content, if it exists."""
    if isinstance(directory, RemotePath):
        with contextlib.suppress(FileNotFoundError):
            _gfile(directory, "rmtree")
    else:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def input_path(source: str, suffix: str = "") -> Iterator[Path]:
    """Yields the path of --input; standard input, "-", becomes a temporary file."""
    if source != PIPE:
        yield path(source)
        return
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / f"stdin{suffix}"
        if sys.stdin is None:  # After `<&-`.
            raise UserError("--input=- reads standard input, which is closed; name a file.")
        copy.write_bytes(sys.stdin.buffer.read())
        yield copy


def open_regular(path: Path) -> BinaryIO:
    """Opens a file; raises `UserError` for a pipe or device, on which programs would wait."""
    if isinstance(path, pathlib.Path) and not stat.S_ISREG(mode := path.stat().st_mode):
        if not stat.S_ISDIR(mode):  # To open a directory is an error by itself.
            raise UserError(f"{path} is a named pipe or a device; copy its content to a regular "
                            "file, and name that.")
    return path.open("rb")


def file_sha256(path: Path) -> str:
    """Returns the hexadecimal sha256 of a file's content."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bytes(path: Path, max_bytes: int, absent: str = "") -> bytes:
    """Returns a file's content; `UserError` for more than `max_bytes`, `absent` for no file."""
    try:
        with open_regular(path) as file:
            # One byte more than allowed tells that a file is too large, without reading it whole.
            content = file.read(max_bytes + 1)
    except OSError as error:
        if absent and isinstance(error, FileNotFoundError | NotADirectoryError):
            raise UserError(absent) from error
        raise read_error(path, error) from error
    if len(content) > max_bytes:
        raise UserError(f"{path} is larger than {max_bytes:,} bytes, the maximum for a file of its "
                        "kind; name the right file.")
    if content.startswith(b"version "):  # A pointer of Git LFS.
        require_text(path, content)
    return content


def read_error(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a file that can't be read."""
    # Of a directory of the package datasets, a command writes the rows.
    advice = ""
    if isinstance(error, IsADirectoryError):
        splits = "['train']" if (path / "dataset_dict.json").exists() else ""
        is_data_set = splits or (path / "dataset_info.json").exists()
        advice = (" It was saved by datasets; write JSON lines with `python -c \"import datasets; "
                  f"datasets.load_from_disk('{path}'){splits}.to_json('rows.jsonl')\"`." if
                  is_data_set else " Name a file in it.")
    return UserError(f"cannot read {path}: {error.strerror or error}.{advice}")


def _gfile(path: RemotePath, function: str, *arguments: Any, **options: Any) -> Any:
    with os_errors(path) as gfile:
        return getattr(gfile, function)(str(path), *arguments, **options)


@contextlib.contextmanager
def os_errors(path: Path) -> Iterator[Any]:
    """Yields `tf.io.gfile` and turns TensorFlow's errors into the operating system's."""
    import tensorflow as tf

    try:
        yield tf.io.gfile
    except tf.errors.OpError as error:
        number = {tf.errors.NotFoundError: errno.ENOENT,
                  tf.errors.ResourceExhaustedError: errno.ENOSPC}.get(type(error), errno.EIO)
        # TensorFlow writes "NAME; Permission denied".
        reason = (tensorflow_reason(error).rpartition("; ")[2] if number == errno.EIO
                  else os.strerror(number))
        raise OSError(number, reason, str(path)) from error

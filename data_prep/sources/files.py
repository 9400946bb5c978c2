"""Reads files of one format, compressed or not.

Python's `bz2` and `lzma` modules stop without an error at a damaged second stream of a file, and
zstandard's reader does so where a file is cut short. This module reports both as errors.
"""

import bz2
import collections
import dataclasses
import gzip
import hashlib
import io
import lzma
import pathlib
import re
import typing
import zlib
from collections.abc import Callable, Iterator, Sequence

from data_prep.documents import COMPRESSED, NO_KEY, DocumentPart, Parser
from data_prep.sources.source import CORPUS_PART_BYTES, Source
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.core.file_kinds import HEAD_BYTES, require_text
from electra_tf.core.storage import Path, read_error

CORRUPT = (EOFError, OSError, zlib.error)
"""Errors of reading a damaged file; an `OSError` with `errno` is the operating system's."""
_STORED = 1 << 10
"""Compressed bytes read at once; in .zst they are 256 blocks at most, which hold 32 MB."""
_BUFFER = 1 << 17  # Most bytes that .bz2 and .xz decompress at once; 1 KB of .bz2 may hold 1 GB.


@dataclasses.dataclass
class FileSource(Source):
    """Files of one format; `documents` raises `UserError` for a file that cannot be read."""

    paths: tuple[Path, ...]
    name: str  # Name of the format and of the options that determine its text; part of the digest.
    read: Callable[[typing.BinaryIO, str], Iterator[DocumentPart]]
    """A picklable function that yields the documents of a decompressed file with a name. If it
    raises one of `CORRUPT`, the rest of the file is not read."""
    parse: Parser
    require: Callable[[str, bytes], None] | None = require_text
    """Raises `UserError` for a file by its name and its first decompressed bytes."""

    def __post_init__(self):
        self.size = sum(path.stat().st_size for path in self.paths)
        self._finished_bytes = 0
        self._file: typing.BinaryIO | None = None

    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents of all files; damage ends the documents of its file only."""
        self._finished_bytes = 0
        for path in self.paths:
            # Yield the documents of one file, up to its damage if there is any.
            last, end, problem = None, 0, ""
            try:
                with path.open("rb") as self._file:
                    file = unpacked(self._file, path.suffix)
                    try:
                        if self.require:
                            self.require(str(path), file.peek(HEAD_BYTES)[:HEAD_BYTES])
                        parts = self.read(file, str(path))
                    except UserError as error:
                        parts = iter([DocumentPart(content=b"", key=NO_KEY, path=str(path),
                                                   damage=str(error))])
                    for last in parts:
                        end = max(end, last.offset + len(last.content))
                        yield last
            except CORRUPT as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise read_error(path, error) from error
                problem = str(error) or type(error).__name__
            finally:
                self._file = None
            # The damage belongs to the document that it interrupts.
            if problem:
                packed = path.suffix in COMPRESSED
                content = " of the decompressed content" if packed else ""
                rename = f", or rename it if it is no {path.suffix}" if packed and not end else ""
                unfinished = last is not None and not last.ends
                yield DocumentPart(
                    content=b"", key=last.key if unfinished else NO_KEY, begins=not unfinished,
                    path=str(path), damage=f"{path} is corrupt or cut short ({problem}), after "
                    f"byte {end}{content}; get a whole copy of the file{rename}.")
            self._finished_bytes += path.stat().st_size

    def position(self) -> int:
        """Returns the stored bytes of the finished files and of the open one."""
        return self._finished_bytes + (self._file.tell() if self._file else 0)

    def sha256(self) -> str:
        """Returns a digest of the format and of the files' stored bytes, in order."""
        return digest_of(self.name, self.paths)

    def parts(self) -> tuple["FileSource", ...]:
        """Returns sources of up to `CORPUS_PART_BYTES` each; a larger file is one part."""
        # Consecutive files, until a part has enough bytes.
        groups: list[list[Path]] = []
        remaining = 0
        for path in self.paths:
            size = path.stat().st_size
            # Every part has text: an empty file belongs to the preceding part.
            if not groups or (size > max(remaining, 0) and remaining < CORPUS_PART_BYTES):
                groups.append([])
                remaining = CORPUS_PART_BYTES
            groups[-1].append(path)
            remaining -= size
        return tuple(dataclasses.replace(self, paths=tuple(group)) for group in groups)


def digest_of(name: str, paths: Sequence[Path]) -> str:
    """Returns a digest of a name and of files' stored bytes, in order."""
    digest = hashlib.sha256(name.encode())
    for path in paths:
        try:
            digest.update(bytes.fromhex(storage.file_sha256(path)))
        except OSError as error:
            raise read_error(path, error) from error
    return digest.hexdigest()


def damaged_stretch(path: str, problem: str) -> DocumentPart:
    """Returns the part for an unreadable stretch; `problem` names the file and the place."""
    return DocumentPart(content=b"", key=NO_KEY, path=path,
                        damage=f"{problem}; get a whole copy of the file.")


def matching_files(*patterns: str, names: str = "") -> tuple[Path, ...]:
    """Returns the files that match patterns, sorted, each once; `UserError` without any text.

    For a directory, it returns the files that match one of `names`, patterns separated by spaces;
    on this machine also those in its subdirectories.
    """
    # Patterns can overlap, and links name a file again; each file is read once.
    distinct: dict[Path, Path] = {}
    for pattern in patterns:
        matches = storage.matching(pattern)
        if names and storage.path(pattern).is_dir():
            below = "" if isinstance(storage.path(pattern), storage.RemotePath) else "**/"
            matches = [path for name in names.split()
                       for path in storage.matching(f"{pattern.rstrip('/')}/{below}{name}")]
        if not matches:
            raise UserError(f"--input: {_no_file(pattern)}")
        distinct |= {path.resolve(): path for path in matches}
    paths = tuple(sorted(distinct.values(), key=str))
    if not any(path.stat().st_size for path in paths):
        raise UserError(f"--input: {paths[0]} is empty"
                        f"{' and so are the others' if len(paths) > 1 else ''}; "
                        "give files with text.")
    return paths


def _no_file(pattern: str) -> str:
    """Returns why a pattern names no file, and what to do."""
    path = storage.path("/dev/stdin" if pattern == "-" else pattern)
    # A directory: a pattern of its most frequent suffix is an example.
    if path.is_dir():
        below = "*" if isinstance(path, storage.RemotePath) else "**/*"
        every = f"{pattern.rstrip('/') or pattern}/{below}"
        names = [file.name for file in storage.matching(every)]
        suffixes = collections.Counter("".join(re.findall(r"(?:\.[A-Za-z]\w*)+$", name))
                                       for name in names)
        if not names:
            return f"{pattern} is a directory without files; name one that holds files."
        return (f"{pattern} is a directory; name its files, for example "
                f"'{every}{suffixes.most_common(1)[0][0]}'.")
    if path.exists():
        return (f"{pattern} is a pipe or a device, and the text is read several times; write it to "
                "a file, and name the file.")
    return (f"no file matches {pattern!r}; check the path from this directory, "
            f"{pathlib.Path.cwd()}.")


def unpacked(raw: typing.BinaryIO, suffix: str) -> typing.BinaryIO:
    """Returns the content of an open file, decompressed by its suffix: .gz, .bz2, .xz, .zst."""
    match suffix:
        case ".gz":
            return gzip.open(raw)
        case ".bz2":
            stream = _Unpacked(raw, bz2.BZ2Decompressor, OSError)
        case ".xz":
            stream = _Unpacked(raw, lzma.LZMADecompressor, lzma.LZMAError)
        case ".zst":
            import zstandard  # Few files need it.

            # Dumps of Reddit were written with --long=31.
            new = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj
            stream = _Unpacked(raw, new, zstandard.ZstdError)
        case _:
            return raw
    return io.BufferedReader(stream, _BUFFER)


class _Unpacked(io.RawIOBase):
    """The decompressed streams of a file, concatenated."""

    def __init__(self, raw: typing.BinaryIO, decompressor: Callable, error: type[Exception]):
        super().__init__()
        self._raw, self._new, self._error = raw, decompressor, error
        self._stream: typing.Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        # Decompress until there is something to return, at most `_BUFFER` bytes at a time.
        while not self._ready:
            stored = b""
            # The next of several concatenated streams begins after the padding of the last one.
            if self._stream is None or self._stream.eof:
                stored = b"" if self._stream is None else self._stream.unused_data
                # Files of .xz and of tapes have padding.
                while not (stored := stored.lstrip(b"\0")):
                    if not (stored := self._raw.read(_STORED)):
                        return 0
                self._stream = self._new()
            elif getattr(self._stream, "needs_input", True) and not (
                    stored := self._raw.read(_STORED)):
                raise EOFError("the file ends within a compressed stream")
            try:
                # zstandard's decompressor has no `needs_input` and no limit.
                limit = (_BUFFER,) if hasattr(self._stream, "needs_input") else ()
                self._ready = memoryview(self._stream.decompress(stored, *limit))
            except self._error as error:
                raise OSError(str(error)) from error
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

"""Streams of text lines: files of plain text, compressed or not, and text that Python carries.

A source yields non-empty lines without line ends, and `DOCUMENT_END` ("") after the last line of
every document; memory stays flat whatever the size of a file, a document or a line.
"""

import bz2
import dataclasses
import gzip
import hashlib
import io
import lzma
import typing
import zlib
from collections.abc import Callable, Iterator

from data_prep import embedded_text
from electra_tf import storage
from electra_tf.errors import UserError
from electra_tf.storage import Path

DOCUMENT_END = ""
LONGEST_LINE = 1 << 20
"""Bytes; a longer line is cut at a space, so that an endless one can't fill the memory."""
EMBEDDED = "embedded:python"
_OPENERS: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CORRUPT = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


class Source(typing.Protocol):
    """Where text comes from."""

    size: int
    """Bytes to read in all."""

    def lines(self) -> Iterator[str]:
        """Yields the lines, and `DOCUMENT_END` after every document."""

    def position(self) -> int:
        """Returns how many of `size` bytes have been read, for progress."""

    def sha256(self) -> str:
        """Returns a digest of everything that `lines` will yield."""


def open_source(pattern: str) -> Source:
    """Returns the source that --input names.

    Args:
        pattern: file patterns separated by commas, or `embedded:python`.

    Raises:
        UserError: a pattern matches no file, or all files are empty.
    """
    if pattern == EMBEDDED:
        return EmbeddedText()
    if not pattern:
        raise UserError("--input is empty; give file patterns separated by commas, "
                        f"or {EMBEDDED} for the text that Python carries.")
    return TextFiles(matching_files(pattern))


def matching_files(pattern: str) -> tuple[Path, ...]:
    """Returns the files that match comma-separated patterns, sorted, each once."""
    found: set[Path] = set()
    for part in filter(None, (part.strip() for part in pattern.split(","))):
        matches = storage.matching(part)
        if not matches:
            raise UserError(f"--input: no file matches {part!r}; check the pattern (quote it, so "
                            "that the shell does not expand it).")
        found.update(matches)
    return tuple(sorted(found, key=str))


@dataclasses.dataclass
class TextFiles:
    """Text files (.txt, or .gz, .bz2, .xz of one), read one after another.

    A blank line ends a document, and so does the end of a file. Windows line ends and a
    byte-order mark are fine.

    Raises:
        UserError: (from `lines`) a file can't be read, is corrupt or isn't UTF-8; (at once) all
            files are empty.
    """

    paths: tuple[Path, ...]

    def __post_init__(self):
        self.size = sum(path.stat().st_size for path in self.paths)
        self._finished_bytes = 0
        self._raw: io.BufferedIOBase | None = None
        if not self.size:
            raise UserError(f"--input: {self.paths[0]} is empty"
                            f"{' and so are the others' if len(self.paths) > 1 else ''}; "
                            "give files with text.")

    def lines(self) -> Iterator[str]:
        """See `Source`."""
        self._finished_bytes = 0
        for path in self.paths:
            open_document = False
            for line in self._text_lines(path):
                if line or open_document:
                    yield line
                open_document = bool(line)
            self._finished_bytes += path.stat().st_size
            if open_document:
                yield DOCUMENT_END

    def position(self) -> int:
        """See `Source`."""
        open_raw = self._raw is not None and not self._raw.closed
        return self._finished_bytes + (self._raw.tell() if open_raw else 0)

    def sha256(self) -> str:
        """See `Source`: over the files' bytes as they are stored, in order."""
        digest = hashlib.sha256()
        for path in self.paths:
            with _readable(path), path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def _text_lines(self, path: Path) -> Iterator[str]:
        """Yields the stripped lines of a file; blank ones as ""."""
        offset = 0
        with _readable(path), path.open("rb") as self._raw:
            opener = _OPENERS.get(path.suffix)
            for raw in _bounded_lines(opener(self._raw) if opener else self._raw):
                line = _decode(raw, path, offset)
                yield (line.removeprefix("\ufeff") if not offset else line).strip()
                offset += len(raw)


@dataclasses.dataclass
class EmbeddedText:
    """English that every Python carries: its language reference and its modules' docstrings."""

    def __post_init__(self):
        self._documents = embedded_text.documents()
        self.size = sum(len(line) for document in self._documents for line in document)
        self._read = 0

    def lines(self) -> Iterator[str]:
        """See `Source`."""
        self._read = 0
        for document in self._documents:
            for line in document:
                self._read += len(line)
                yield line
            yield DOCUMENT_END

    def position(self) -> int:
        """See `Source`."""
        return self._read

    def sha256(self) -> str:
        """See `Source`."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(f"{line}\n".encode())
        return digest.hexdigest()


def _bounded_lines(file: io.BufferedIOBase) -> Iterator[bytes]:
    """Yields lines with their ends; a line past `LONGEST_LINE` in parts, cut behind a space."""
    rest = b""
    while part := file.readline(LONGEST_LINE - len(rest)):
        part = rest + part
        rest = b""
        if len(part) >= LONGEST_LINE and not part.endswith(b"\n"):
            cut = part.rfind(b" ") + 1 or _character_start(part)
            part, rest = part[:cut], part[cut:]
        yield part
    if rest:
        yield rest


def _character_start(part: bytes) -> int:
    """Returns where the last UTF-8 character of `part` begins."""
    return max((i for i in range(len(part) - 4, len(part)) if part[i] & 0xC0 != 0x80),
               default=len(part))


def _decode(raw: bytes, path: Path, offset: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        unpacked = " of the decompressed text" if path.suffix in _OPENERS else ""
        raise UserError(
            f"{path} is not UTF-8: bad byte 0x{raw[error.start]:02x} at offset "
            f"{offset + error.start}{unpacked}; convert the file, for example with "
            "`iconv -f latin1 -t utf-8`.") from error


class _readable:
    """Turns the errors of reading a file into a UserError that names it."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, traceback) -> None:
        if isinstance(error, _CORRUPT) or (isinstance(error, OSError) and error.errno is None):
            raise UserError(f"{self._path} is corrupt or cut short ({error}); "
                            "get a whole copy of the file.") from error
        if isinstance(error, OSError):
            raise UserError(f"cannot read {self._path}: {error.strerror}.") from error

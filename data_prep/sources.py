"""Streams of documents: files of plain text, compressed or not, and text that Python carries.

Memory stays flat whatever the size of a file, a document or a line.
"""

import bz2
import dataclasses
import gzip
import hashlib
import io
import itertools
import lzma
import typing
import zlib
from collections.abc import Callable, Iterator

from data_prep import embedded_text
from data_prep.documents import LONGEST_PART, DocumentPart, Parser, key_of, parse_plain_text
from electra_tf import storage
from electra_tf.errors import UserError
from electra_tf.storage import Path

PIECE_BYTES = 256 << 20
"""Stored bytes of a piece, about."""
_LONGEST_BLANK = 64
"""Bytes of a line that may be blank for spaces that aren't ASCII."""
EMBEDDED = "embedded:python"
_OPENERS: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CORRUPT = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


class Source(typing.Protocol):
    """Where text comes from. It can be pickled, unless it is being read."""

    size: int
    """Bytes to read in all."""
    parse: Parser
    """Reads text out of the documents."""

    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents, those that are too long in parts."""

    def position(self) -> int:
        """Returns how many of `size` bytes have been read, for progress."""

    def sha256(self) -> str:
        """Returns a digest of everything that `documents` will yield."""

    def pieces(self) -> "tuple[Source, ...]":
        """Returns sources that can be read apart: in order they have the documents of this one.

        They are cut between files, about `PIECE_BYTES` each. One that can't be cut returns itself.
        """


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

    A blank line ends a document, and so does the end of a file.

    Raises:
        UserError: (from `documents`) a file can't be read or is corrupt; (at once) all files are
            empty.
    """

    paths: tuple[Path, ...]
    parse: Parser = parse_plain_text

    def __post_init__(self):
        self.size = sum(path.stat().st_size for path in self.paths)
        self._finished_bytes = 0
        self._raw: io.BufferedIOBase | None = None
        if not self.size:
            raise UserError(f"--input: {self.paths[0]} is empty"
                            f"{' and so are the others' if len(self.paths) > 1 else ''}; "
                            "give files with text.")

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
        self._finished_bytes = 0
        for path in self.paths:
            with _readable(path), path.open("rb") as self._raw:
                opener = _OPENERS.get(path.suffix)
                yield from _documents(opener(self._raw) if opener else self._raw, str(path))
            self._finished_bytes += path.stat().st_size

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

    def pieces(self) -> "tuple[TextFiles, ...]":
        """See `Source`."""
        groups: list[list[Path]] = []
        room = 0
        for path in self.paths:
            size = path.stat().st_size
            # Every piece has text: empty files go with the one before.
            if not groups or (size > max(room, 0) and room < PIECE_BYTES):
                groups.append([])
                room = PIECE_BYTES
            groups[-1].append(path)
            room -= size
        return tuple(TextFiles(tuple(group), self.parse) for group in groups)


@dataclasses.dataclass
class EmbeddedText:
    """English that every Python carries: its language reference and its modules' docstrings."""

    parse: Parser = parse_plain_text

    def __post_init__(self):
        self._texts = ["\n".join(lines).encode() for lines in embedded_text.documents()]
        self.size = sum(map(len, self._texts))
        self._read = 0

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
        self._read = 0
        for text in self._texts:
            self._read += len(text)
            yield DocumentPart(content=text, key=key_of(text), path=EMBEDDED)

    def position(self) -> int:
        """See `Source`."""
        return self._read

    def sha256(self) -> str:
        """See `Source`."""
        return hashlib.sha256(b"\n\n".join(self._texts)).hexdigest()

    def pieces(self) -> "tuple[EmbeddedText, ...]":
        """See `Source`."""
        return (self,)


def _documents(file: io.BufferedIOBase, path: str) -> Iterator[DocumentPart]:
    """Yields the documents of a file: what stands between blank lines."""
    gathered: list[bytes] = []
    size = offset = key = 0
    begins = True
    for line in itertools.chain(_bounded_lines(file), (b"",)):
        blank = _is_blank(line)
        if gathered and (blank or size + len(line) > LONGEST_PART):
            content = b"".join(gathered)
            key = key_of(content) if begins else key
            yield DocumentPart(content=content, key=key, begins=begins, ends=blank, path=path,
                               offset=offset - size)
            gathered, size, begins = [], 0, blank
        if not blank:
            gathered.append(line)
            size += len(line)
        offset += len(line)


def _is_blank(line: bytes) -> bool:
    return not line.strip() or (len(line) < _LONGEST_BLANK and not line.isascii() and not
                                line.decode(errors="replace").removeprefix("\ufeff").strip())


def _bounded_lines(file: io.BufferedIOBase) -> Iterator[bytes]:
    """Yields lines with their ends; a line past `LONGEST_PART` in parts, cut behind a space."""
    rest = b""
    while part := file.readline(LONGEST_PART - len(rest)):
        part = rest + part
        rest = b""
        if len(part) >= LONGEST_PART and not part.endswith(b"\n"):
            cut = part.rfind(b" ") + 1 or _character_start(part)
            part, rest = part[:cut], part[cut:]
        yield part
    if rest:
        yield rest


def _character_start(part: bytes) -> int:
    """Returns where the last UTF-8 character of `part` begins."""
    return max((i for i in range(len(part) - 4, len(part)) if part[i] & 0xC0 != 0x80),
               default=len(part))


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

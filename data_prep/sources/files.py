"""A source that is files of one format, read one after another."""

import dataclasses
import hashlib
import typing
from collections.abc import Callable, Iterator

from data_prep.documents import COMPRESSED, NO_KEY, DocumentPart, Parser
from data_prep.sources import compression
from data_prep.sources.source import PIECE_BYTES, Source
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path


class Meter:
    """The position in the file that is being read, set by its reader."""

    def __init__(self):
        self.stored_bytes: Callable[[], int] = int


class Format(typing.Protocol):
    """The layout of documents in a file. It can be pickled."""

    name: str
    """Of the format and what else decides its text; part of the source's digest."""

    def documents(self, path: Path, meter: Meter) -> Iterator[DocumentPart]:
        """Yields the documents of one file.

        Raises:
            OSError: the file can't be read; without `errno`, and as `compression.CORRUPT`: it is
                damaged, or cut short, and the rest of it is lost.
            UserError: it has another format.
        """


@dataclasses.dataclass(frozen=True)
class StreamFormat:
    """A format that is read from the file's first byte to its last, compressed or not."""

    name: str
    split: Callable[[typing.BinaryIO, str], Iterator[DocumentPart]]
    """Yields the documents of the unpacked file, whose name is the second argument."""

    def documents(self, path: Path, meter: Meter) -> Iterator[DocumentPart]:
        """See `Format`."""
        with path.open("rb") as raw:
            meter.stored_bytes = raw.tell
            try:
                yield from self.split(compression.opened(raw, path.name), str(path))
            finally:
                meter.stored_bytes = int


@dataclasses.dataclass
class FileSource(Source):
    """Files of one format; `documents` raises `UserError` for a file that cannot be read."""

    paths: tuple[Path, ...]
    format: Format
    parse: Parser

    def __post_init__(self):
        self.size = sum(path.stat().st_size for path in self.paths)
        self._finished_bytes = 0
        self._meter = Meter()

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
        self._finished_bytes = 0
        for path in self.paths:
            yield from self._documents_of(path)
            self._finished_bytes += path.stat().st_size

    def _documents_of(self, path: Path) -> Iterator[DocumentPart]:
        last, end = None, 0
        try:
            for last in self.format.documents(path, self._meter):
                end = max(end, last.offset + len(last.content))
                yield last
        except (OSError, *compression.CORRUPT) as error:
            if not compression.is_damage(error):
                raise compression.cannot_read(path, error) from error
            unpacked = (" of the decompressed content"
                        if path.suffix in COMPRESSED else "")
            going_on = last is not None and not last.ends
            yield DocumentPart(
                content=b"", key=last.key if going_on else NO_KEY, begins=not going_on,
                path=str(path), damage=f"{path} is corrupt or cut short ({error}), behind byte "
                f"{end}{unpacked}; get a whole copy of the file.")

    def position(self) -> int:
        """See `Source`."""
        return self._finished_bytes + self._meter.stored_bytes()

    def sha256(self) -> str:
        """See `Source`: over the files' bytes as they are stored, in order."""
        digest = hashlib.sha256(self.format.name.encode())
        for path in self.paths:
            try:
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise compression.cannot_read(path, error) from error
        return digest.hexdigest()

    def pieces(self) -> tuple["FileSource", ...]:
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
        return tuple(dataclasses.replace(self, paths=tuple(group)) for group in groups)


def damaged_stretch(path: str, problem: str) -> DocumentPart:
    """Returns the part for a stretch without documents; `problem` names the file and the place."""
    return DocumentPart(content=b"", key=NO_KEY, path=path,
                        damage=f"{problem}; get a whole copy of the file.")


def matching_files(*patterns: str, names: str = "") -> tuple[Path, ...]:
    """Returns the files that match patterns, sorted, each once.

    In a directory, files match whose names match one of `names`, patterns separated by spaces; on
    this machine also in the directories below it.

    Raises:
        UserError: a pattern matches no file, or all files are empty.
    """
    found: set[Path] = set()
    for pattern in patterns:
        matches = _in_directory(pattern, names) if names else []
        matches = matches or storage.matching(pattern)
        if not matches:
            raise UserError(f"--input: no file matches {pattern!r}; check the pattern (quote it, "
                            "so that the shell does not expand it).")
        found.update(matches)
    paths = tuple(sorted(found, key=str))
    if not any(path.stat().st_size for path in paths):
        raise UserError(f"--input: {paths[0]} is empty"
                        f"{' and so are the others' if len(paths) > 1 else ''}; "
                        "give files with text.")
    return paths


def _in_directory(pattern: str, names: str) -> list[Path]:
    place = storage.path(pattern)
    if not place.is_dir():
        return []
    below = "" if storage.is_remote(pattern) else "**/"
    return [path for name in names.split()
            for path in storage.matching(f"{pattern.rstrip('/')}/{below}{name}")]

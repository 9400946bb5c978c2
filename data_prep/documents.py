"""Documents as bytes, and parsers of their text.

A source yields raw documents, and workers parse them. A document that is too long for the memory
comes in parts. An unreadable stretch of a file is a part with a description of the damage.
"""

import codecs
import collections
import dataclasses
import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError

DOCUMENT_END = ""  # The line that follows each document among lines of text.
MAX_PART_BYTES = 1 << 20  # Size of a part of a long document.
NO_KEY = 2**64 - 1  # The `DocumentPart.key` of unreadable stretches, which are not held out.
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
MAX_MESSAGES = 20  # Skipped documents whose messages are kept; further ones are only counted.
Counts = collections.Counter[str]  # Number of a source -> a count.


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPart:
    """A document, or consecutive bytes of a longer one."""

    content: bytes
    """The whole document, or a part of at most about `MAX_PART_BYTES` if its format has parts."""
    key: int  # Hash of the document's first part, in [0, 2^64), independent of its position.
    begins: bool = True  # True for the first part of a document.
    ends: bool = True  # True for the last part of a document.
    path: str = ""
    offset: int = 0  # Position of the first byte in the decompressed file.
    source: int = 0  # Number of the source among several that are read together.
    damage: str = ""  # Description of an unreadable stretch of the file; `content` is then empty.


Parser = Callable[[DocumentPart], Iterable[str]]
"""A picklable function that returns a part's lines, stripped, not empty, or raises `UserError`."""


@dataclasses.dataclass(frozen=True)
class SkippingParser:
    """A parser of --on_error=skip: `lines_of` skips the parts for which it raises `UserError`."""

    parse: Parser


def parse_by_source(parsers: tuple[Parser, ...], part: DocumentPart) -> Iterable[str]:
    """Parses a part with its source's parser."""
    return parsers[part.source](part)


def key_of(content: bytes) -> int:
    """Returns the `DocumentPart.key` of a document whose first part is `content`.

    It is equal with and without a byte-order mark, with CRLF and LF, and in every composed or
    decomposed form of characters, so that such copies are in one split.
    """
    content = content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
    if not content.isascii():  # Bytes that are not UTF-8 stay as they are.
        text = content.decode(errors="surrogateescape")
        content = unicodedata.normalize("NFC", text).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(content.strip(), digest_size=8).digest())


def parse_plain_text(part: DocumentPart) -> Iterator[str]:
    """Returns the lines of UTF-8 text, without a byte-order mark; `UserError` for other bytes."""
    text = decoded(part)
    return stripped(text if part.offset else text.removeprefix("\ufeff"))


def decoded(part: DocumentPart) -> str:
    """Returns a part's content as text; `UserError` if it is not UTF-8."""
    try:
        return part.content.decode("utf-8")
    except UnicodeDecodeError as error:
        unpacked = " of the decompressed text" if part.path.endswith(COMPRESSED) else ""
        raise UserError(
            f"{part.path} is not UTF-8: bad byte 0x{part.content[error.start]:02x} at offset "
            f"{part.offset + error.start}{unpacked}; convert the file, for example with "
            "`iconv -f latin1 -t utf-8`.") from error


def stripped(text: str) -> Iterator[str]:
    """Returns the lines of a text, stripped, without empty ones."""
    return filter(None, map(str.strip, text.split("\n")))


@dataclasses.dataclass
class ReadingNotes:
    """Counts of the documents that a reader read and skipped; `+` adds them."""

    __pydantic_config__ = strict_json.STRICT

    skipped: int = 0
    """Damaged documents, or damaged parts of a document in parts, that were skipped."""
    messages: list[str] = dataclasses.field(default_factory=list)
    """Errors of the first `MAX_MESSAGES`."""
    documents: Counts = dataclasses.field(default_factory=collections.Counter)
    text_bytes: Counts = dataclasses.field(default_factory=collections.Counter)
    """Bytes of the text, UTF-8, without line ends."""

    def __add__(self, other: "ReadingNotes") -> "ReadingNotes":
        return ReadingNotes(
            self.skipped + other.skipped, [*self.messages, *other.messages][:MAX_MESSAGES],
            self.documents + other.documents, self.text_bytes + other.text_bytes)


def lines_of(parts: Iterable[DocumentPart], parse: Parser | SkippingParser,
             notes: ReadingNotes | None = None) -> Iterator[str]:
    """Yields the lines of documents, and `DOCUMENT_END` after each document's last line.

    `notes` counts what is read and skipped. Damage raises `UserError` without a `SkippingParser`.
    """
    notes = ReadingNotes() if notes is None else notes
    skips = isinstance(parse, SkippingParser)
    for part in parts:
        # To skip a damaged part whole, all its lines are parsed before the first is yielded.
        source, size = str(part.source), 0
        try:
            if part.damage:
                raise UserError(part.damage)
            for line in list(parse.parse(part)) if skips else parse(part):
                size += len(line) if line.isascii() else len(line.encode())
                yield line
            notes.documents[source] += part.begins
            notes.text_bytes[source] += size
        except UserError as error:
            if not skips:
                raise
            notes.skipped += 1
            notes.messages = [*notes.messages, str(error)][:MAX_MESSAGES]
        if part.ends:
            yield DOCUMENT_END


def batches(lines: Iterable[str], characters: int) -> Iterator[list[str]]:
    """Groups lines into batches of at least `characters` with line ends; the last is smaller."""
    batch: list[str] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line) + 1
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch

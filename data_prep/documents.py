"""Documents as they are stored, and the parser that reads text out of them.

A source hands documents out raw, so that workers do the parsing. One that is too long for the
memory comes in parts.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator

from electra_tf.errors import UserError

DOCUMENT_END = ""
"""Among lines of text, what stands behind each document."""
LONGEST_PART = 1 << 20
"""Bytes of a document that are handed out at once."""
COMPRESSED = (".gz", ".bz2", ".xz")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class DocumentPart:
    """A document, or consecutive bytes of a longer one."""

    content: bytes
    """At most about `LONGEST_PART`."""
    key: int
    """In [0, 2^64): a hash of the document's first part, wherever it stands."""
    begins: bool = True
    """Whether it is the first part."""
    ends: bool = True
    """Whether it is the last part."""
    path: str = ""
    """The file that it stands in, for messages."""
    offset: int = 0
    """Of the first byte in the file, which is unpacked if it is compressed."""


Parser = Callable[[DocumentPart], Iterable[str]]
"""Returns the lines of a part: stripped, not empty. It can be pickled, and raises `UserError`s."""


def key_of(content: bytes) -> int:
    """Returns the `DocumentPart.key` of a document whose first part is `content`."""
    return int.from_bytes(hashlib.blake2b(content.strip(), digest_size=8).digest())


def parse_plain_text(part: DocumentPart) -> Iterator[str]:
    """Returns the lines of UTF-8 text. Windows line ends and a byte-order mark are fine.

    Raises:
        UserError: it is not UTF-8.
    """
    try:
        text = part.content.decode("utf-8")
    except UnicodeDecodeError as error:
        unpacked = " of the decompressed text" if part.path.endswith(COMPRESSED) else ""
        raise UserError(
            f"{part.path} is not UTF-8: bad byte 0x{part.content[error.start]:02x} at offset "
            f"{part.offset + error.start}{unpacked}; convert the file, for example with "
            "`iconv -f latin1 -t utf-8`.") from error
    if not part.offset:
        text = text.removeprefix("\ufeff")
    return filter(None, map(str.strip, text.split("\n")))


def lines_of(parts: Iterable[DocumentPart], parse: Parser) -> Iterator[str]:
    """Yields the lines of documents, and `DOCUMENT_END` after each document's last one."""
    for part in parts:
        yield from parse(part)
        if part.ends:
            yield DOCUMENT_END

"""Reads books, one per file, in the formats of Project Gutenberg and BooksCorpus.

The reader finds a book's beginning and end in its bytes; workers join wrapped lines. A file of
Project Gutenberg has lines `*** START OF THE PROJECT GUTENBERG EBOOK ... ***` and `*** END OF ...`.
"""

import itertools
import re
import statistics
import typing
from collections.abc import Iterator

from data_prep.documents import MAX_PART_BYTES, DocumentPart, decoded, key_of
from data_prep.sources import plain_text
from data_prep.sources.files import FileSource, matching_files

_NAMES = " ".join(f"*.{kind}{packed}" for kind in ("txt", "TXT")
                  for packed in ("", ".gz", ".bz2", ".xz", ".zst"))
_LONGEST_WRAPPED = 100
"""Characters; files wrap lines at 80 or less."""
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]_*`\s]*$")
_NO_SPACE_AFTER = ("--", "—", "-")
_HEAD = 1 << 18
"""Bytes of a file that are searched for the book's beginning."""
_BEGINNING = rb"^[ \t]*\*\*\*[ \t]*START OF TH(?:E|IS) PROJECT GUTENBERG (?:EBOOK|ETEXT)"
_START = re.compile(_BEGINNING + rb"[^*]{0,400}\*\*\*.*$", re.IGNORECASE | re.MULTILINE)
"""The pattern spans lines, because a long title continues in the next one."""
_START_OPEN = re.compile(_BEGINNING + rb".*$", re.IGNORECASE | re.MULTILINE)
_FOOTER = re.compile(
    rb"^[ \t]*(?:"
    rb"\*\*\*[ \t]*END OF TH(?:E|IS) PROJECT GUTENBERG"
    rb"|\*\*\*[ \t]*START: FULL LICENSE"
    rb"|\*{0,3}[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG(?:'S|\xe2\x80\x99S)?\b)",
    re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(
    rb"\s*^[ \t]*(?:Produced by|E-?text prepared by|Transcribed (?:from|by)|"
    rb"This e-?text was (?:produced|prepared|scanned))"
    rb"[^\r\n]*(?:\r?\n[ \t]*[^\s][^\r\n]*)*", re.IGNORECASE | re.MULTILINE)


def books(pattern: str) -> FileSource:
    """Returns the source of books, one per text file, from a pattern or a directory."""
    return FileSource(matching_files(pattern, names=_NAMES), "books", split_book, parse_book)


def split_book(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields a book without Project Gutenberg's header and footer, in parts cut at paragraphs."""
    blocks = _blocks(file)
    head = next(blocks, b"")
    begin = _body_start(head)
    key, offset, first = 0, begin, True
    for block, following in itertools.pairwise(itertools.chain([head[begin:]], blocks, [b""])):
        footer = _FOOTER.search(block)
        content = block[:footer.start()] if footer else block
        ends = bool(footer) or not following
        if content.strip() or not first:
            key = key_of(content) if first else key
            yield DocumentPart(content=content, key=key, begins=first, ends=ends, path=path,
                               offset=offset)
            first = False
        if ends:
            break
        offset += len(block)
    for _ in blocks:  # Reading to the end detects damage there.
        pass


def _blocks(file: typing.BinaryIO) -> Iterator[bytes]:
    """Yields a file in blocks of 1 to 3 times `MAX_PART_BYTES`, cut after blank lines if possible.

    A block ends at a line's end, so a mark of one line is whole. A small rest joins the last block.
    """
    waiting: list[bytes] = []
    gathered: list[bytes] = []
    size = 0
    for line in plain_text.bounded_lines(file):
        gathered.append(line)
        size += len(line)
        if size >= MAX_PART_BYTES and (not line.strip() or size >= 2 * MAX_PART_BYTES):
            yield from waiting
            waiting, gathered, size = [b"".join(gathered)], [], 0
    last = b"".join(waiting + gathered)
    if last:
        yield last


def parse_book(part: DocumentPart) -> Iterator[str]:
    """Returns the paragraphs of a book with wrapped lines, or the lines of another book.

    In BooksCorpus every line is a sentence. Raises `UserError` for bytes that are not UTF-8.
    """
    paragraphs = _paragraphs(decoded(part).removeprefix("\ufeff"))
    inner = [line for lines in paragraphs for line in lines[:-1]]
    if not _is_wrapped(inner):
        return (line for lines in paragraphs for line in lines)
    return map(_joined, paragraphs)


def _paragraphs(text: str) -> list[list[str]]:
    groups = itertools.groupby(map(str.strip, text.split("\n")), bool)
    return [list(lines) for filled, lines in groups if filled]


def _is_wrapped(inner: list[str]) -> bool:
    """Returns True if most lines inside of paragraphs do not end a sentence."""
    if not inner or statistics.median(map(len, inner)) > _LONGEST_WRAPPED:
        return False
    return sum(bool(_SENTENCE_END.search(line)) for line in inner) < len(inner) / 2


def _joined(lines: list[str]) -> str:
    pieces = [line if line.endswith(_NO_SPACE_AFTER) else f"{line} " for line in lines]
    return "".join(pieces).strip()


def _body_start(head: bytes) -> int:
    """Returns the place of the book's beginning in its file; 0 without a header."""
    head = head[:_HEAD]
    mark = _START.search(head) or _START_OPEN.search(head)
    if not mark:
        return 0
    credits = _CREDITS.match(head, mark.end())
    return (credits or mark).end()

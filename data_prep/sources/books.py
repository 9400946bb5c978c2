"""Books: a file is a document. Project Gutenberg's and BooksCorpus' files are known.

Where a book begins and ends is found in its bytes; workers join its wrapped lines. A newer file of
Project Gutenberg (from about 2001) has lines `*** START OF THIS PROJECT GUTENBERG EBOOK ... ***`
and `*** END OF ...`. An older one begins behind the line that ends with `*END*` of its "small
print"; a few have the small print at their end. Most say "End of Project Gutenberg's ..." too.
"""

import itertools
import re
import statistics
import typing
from collections.abc import Iterator

from data_prep.documents import LONGEST_PART, DocumentPart, decoded, key_of
from data_prep.sources import plain_text
from data_prep.sources.files import FileSource, StreamFormat, matching_files

_NAMES = " ".join(f"*.{kind}{packed}" for kind in ("txt", "TXT")
                  for packed in ("", ".gz", ".bz2", ".xz", ".zst"))
_LONGEST_WRAPPED = 100
"""Characters; what wraps lines does it at 80 or less."""
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]_*`\s]*$")
_NO_SPACE_AFTER = ("--", "—", "-")
_HEAD = 1 << 18
"""Bytes of a book in which its beginning is looked for."""
_LEAST = 100
"""Bytes that a book has at least: the small print behind so little was its beginning."""
_BEGINNING = rb"^[ \t]*\*\*\*[ \t]*START OF TH(?:E|IS) PROJECT GUTENBERG (?:EBOOK|ETEXT)"
_START = re.compile(_BEGINNING + rb"[^*]{0,400}\*\*\*.*$", re.IGNORECASE | re.MULTILINE)
"""A long title goes on in the next line."""
_START_OPEN = re.compile(_BEGINNING + rb".*$", re.IGNORECASE | re.MULTILINE)
_SMALL_PRINT_END = re.compile(
    rb"^\*[ \t]*END[ \t]*\*?[ \t]*THE SMALL PRINT!.*$", re.IGNORECASE | re.MULTILINE)
_FOOTER = re.compile(
    rb"^[ \t]*(?:"
    rb"\*\*\*[ \t]*END OF TH(?:E|IS) PROJECT GUTENBERG"
    rb"|\*\*\*[ \t]*START: FULL LICENSE"
    rb"|\*{0,3}[ \t]*END OF (?:THE |THIS )?PROJECT GUTENBERG(?:'S|\xe2\x80\x99S)?\b"
    rb"|\**[ \t]*START\**[ \t]*THE SMALL PRINT!)",
    re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(
    rb"\s*^[ \t]*(?:Produced by|E-?text prepared by|Transcribed (?:from|by)|"
    rb"This e-?text was (?:produced|prepared|scanned))"
    rb"[^\r\n]*(?:\r?\n[ \t]*[^\s][^\r\n]*)*", re.IGNORECASE | re.MULTILINE)
_ENCODING = re.compile(rb"^Character set encoding:[ \t]*([A-Za-z0-9 _-]+?)[ \t]*\r?$",
                       re.IGNORECASE | re.MULTILINE)
_ONE_BYTE = frozenset({"iso88591", "latin1", "isolatin1", "windows1252", "cp1252"})


def books(pattern: str) -> FileSource:
    """Returns the source of books, one per text file, from a pattern or a directory."""
    return FileSource(matching_files(pattern, names=_NAMES), StreamFormat("books", split_book),
                      parse_book)


def split_book(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields a book without what Project Gutenberg puts around it, in parts cut at paragraphs."""
    blocks = _blocks(file)
    head = next(blocks, b"")
    begin = body_start(head)
    from_latin = is_one_byte_text(head)
    key, offset, first = 0, begin, True
    for block, following in itertools.pairwise(itertools.chain([head[begin:]], blocks, [b""])):
        footer = body_end(block)
        content = block if footer < 0 else block[:footer]
        ends = footer >= 0 or not following
        if content.strip() or not first:
            key = key_of(content) if first else key
            yield DocumentPart(
                content=_utf8(content) if from_latin else content, key=key, begins=first,
                ends=ends, path=path, offset=offset)
            first = False
        if ends:
            break
        offset += len(block)
    for _ in blocks:  # To its end, for that may be cut off or damaged.
        pass


def _utf8(content: bytes) -> bytes:
    """Returns text in Windows-1252, if it is not UTF-8 already, as UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace").encode()
    return content


def _blocks(file: typing.BinaryIO) -> Iterator[bytes]:
    """Yields a file in blocks of 1 to 3 times `LONGEST_PART`, cut after blank lines if possible.

    A block ends at a line, so a mark of one line is whole, and the last block is not small.
    """
    waiting: list[bytes] = []
    gathered: list[bytes] = []
    size = 0
    for line in plain_text.bounded_lines(file):
        gathered.append(line)
        size += len(line)
        if size >= LONGEST_PART and (not line.strip() or size >= 2 * LONGEST_PART):
            yield from waiting
            waiting, gathered, size = [b"".join(gathered)], [], 0
    last = b"".join(waiting + gathered)
    if last:
        yield last


def parse_book(part: DocumentPart) -> Iterator[str]:
    """Returns the paragraphs of a book with wrapped lines, or the lines of another one.

    BooksCorpus has a sentence a line: there, a line that another one follows ends a sentence.
    """
    text = decoded(part, "convert the file, for example with `iconv -f latin1 -t utf-8`")
    paragraphs = _paragraphs(text.removeprefix("\ufeff"))
    inner = [line for lines in paragraphs for line in lines[:-1]]
    if not _is_wrapped(inner):
        return (line for lines in paragraphs for line in lines)
    return map(_joined, paragraphs)


def _paragraphs(text: str) -> list[list[str]]:
    groups = itertools.groupby(map(str.strip, text.split("\n")), bool)
    return [list(lines) for filled, lines in groups if filled]


def _is_wrapped(inner: list[str]) -> bool:
    """Tells whether lines that another one follows directly go on in it."""
    if not inner or statistics.median(map(len, inner)) > _LONGEST_WRAPPED:
        return False
    return sum(bool(_SENTENCE_END.search(line)) for line in inner) < len(inner) / 2


def _joined(lines: list[str]) -> str:
    pieces = [line if line.endswith(_NO_SPACE_AFTER) else f"{line} " for line in lines]
    return "".join(pieces).strip()


def body_start(head: bytes) -> int:
    """Returns where the book begins in the first bytes of its file; 0 if it has no header."""
    head = head[:_HEAD]
    mark = _START.search(head) or _START_OPEN.search(head)
    begin = mark.end() if mark else 0
    for end in _SMALL_PRINT_END.finditer(head, begin):
        behind = head[end.end():]
        footer = _FOOTER.search(behind)
        if len(behind[:footer.start() if footer else None].strip()) >= _LEAST:
            begin = end.end()
    credits = _CREDITS.match(head, begin) if begin else None
    return credits.end() if credits else begin


def body_end(content: bytes, begin: int = 0) -> int:
    """Returns where a footer or a licence begins in whole lines of a book; -1 if none does."""
    mark = _FOOTER.search(content, begin)
    return mark.start() if mark else -1


def is_one_byte_text(head: bytes) -> bool:
    """Returns whether the header names a one-byte encoding, as in files before about 2010."""
    said = _ENCODING.search(head[:_HEAD])
    return bool(said) and re.sub(r"[ _-]", "", said[1].decode().lower()) in _ONE_BYTE

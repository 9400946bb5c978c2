"""Books: a file is a document. Project Gutenberg's and BooksCorpus' files are known.

Where a book begins and ends is found in its bytes; workers join its wrapped lines.
"""

import itertools
import re
import statistics
import typing
from collections.abc import Iterator

from data_prep.documents import LONGEST_PART, DocumentPart, decoded, key_of
from data_prep.sources import gutenberg, plain_text
from data_prep.sources.files import FileSource, StreamFormat, matching_files

_NAMES = " ".join(f"*.{kind}{packed}" for kind in ("txt", "TXT")
                  for packed in ("", ".gz", ".bz2", ".xz", ".zst"))
_LONGEST_WRAPPED = 100
"""Characters; what wraps lines does it at 80 or less."""
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]_*`\s]*$")
_NO_SPACE_AFTER = ("--", "—", "-")


def books(pattern: str) -> FileSource:
    """Returns the source that is books, a file each.

    Args:
        pattern: of text files, or a directory with .txt files in it, at any depth.

    Raises:
        UserError: no file matches.
    """
    return FileSource(matching_files(pattern, names=_NAMES), StreamFormat("books", split_book),
                      parse_book)


def split_book(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields a book without what Project Gutenberg puts around it, in parts cut at paragraphs."""
    blocks = _blocks(file)
    head = next(blocks, b"")
    begin = gutenberg.body_start(head)
    from_latin = gutenberg.is_one_byte_text(head)
    key, offset, first = 0, begin, True
    for block, following in itertools.pairwise(itertools.chain([head[begin:]], blocks, [b""])):
        footer = gutenberg.body_end(block)
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
    """Returns text of which its file says that a byte is a letter as UTF-8; it may be already."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace").encode()
    return content


def _blocks(file: typing.BinaryIO) -> Iterator[bytes]:
    """Yields a file in blocks of 1 to 3 times `LONGEST_PART`, cut behind a blank line if possible.

    A block ends at a line; so a mark of one line is whole, and no last block is small.
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
    """Returns the paragraphs of a book whose lines are wrapped, or the lines of one whose aren't.

    A line that another one follows directly ends with a sentence in the latter (BooksCorpus has a
    sentence a line), and mostly doesn't in the former.

    Raises:
        UserError: it is not UTF-8.
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

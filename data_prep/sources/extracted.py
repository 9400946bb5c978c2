"""Reads WikiExtractor's output: articles between lines `<doc id="..." title="...">` and `</doc>`.

The first line of an article is its title. WikiExtractor escapes &, < and > as HTML does.
"""

import dataclasses
import functools
import html
import re
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, parse_plain_text
from data_prep.sources import plain_text
from data_prep.sources.files import FileSource, damaged_stretch, matching_files

_LONGEST = 64 << 20
"""Bytes of an article; MediaWiki takes 2 MB."""
_TITLE = re.compile(rb'title="(.*)"')


def extracted(pattern: str, headings: bool) -> FileSource:
    """Returns the source of the articles in files, with their titles if `headings`."""
    return FileSource(matching_files(pattern), f"wikiextractor headings={headings}",
                      functools.partial(split_extracted, headings), parse_extracted)


def split_extracted(headings: bool, file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the articles of a file, and damage where the marks are not in order."""
    start = offset = size = 0
    lines: list[bytes] | None = None
    for line in plain_text.bounded_lines(file):
        begins, ends = line.startswith(b"<doc "), line.strip() == b"</doc>"
        if begins and lines is None:
            lines, size, start = [], 0, offset + len(line)
            title = html.unescape(_title_of(line)).encode()
        elif ends and lines is not None:
            for part in plain_text.parts_of(b"".join(lines), path):
                yield dataclasses.replace(part, offset=start + part.offset)
            lines = None
        elif begins or ends or size > _LONGEST or (lines is None and line.strip()):
            yield damaged_stretch(path, f"{path}: the line at byte {offset} is not in order; each "
                                  "article is between the lines <doc ...> and </doc>")
            return
        elif lines is not None and (headings or lines or html.unescape(
                line.decode(errors="replace")).strip().encode() != title):
            lines.append(line)
            size += len(line)
        offset += len(line)
    if lines is not None:
        yield damaged_stretch(path, f"{path} ends within the article at byte {start}")


def _title_of(line: bytes) -> str:
    title = _TITLE.search(line)
    return title[1].decode(errors="replace") if title else ""


def parse_extracted(part: DocumentPart) -> Iterator[str]:
    """Returns the lines of an article, unescaped; `UserError` for bytes that are not UTF-8."""
    return filter(None, (html.unescape(line).strip() for line in parse_plain_text(part)))

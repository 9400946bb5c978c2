"""What WikiExtractor makes of Wikipedia's dumps: JSON lines, or texts between `<doc ...>` tags."""

import dataclasses
import html
import itertools
import re
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, decoded, key_of, stripped
from data_prep.sources import json_lines
from data_prep.sources.files import FileSource, StreamFormat, damaged_stretch, matching_files

_BEGIN, _END = b"<doc ", b"</doc>"
_TITLE = re.compile(r'<doc [^\n]*?\btitle="([^\n]*?)"(?: [a-z]+="[^\n]*?")*>')
_NAMES = "wiki_* *.json *.jsonl"


def wikiextractor(pattern: str, headings: bool) -> FileSource:
    """Returns the source of WikiExtractor's articles, from a pattern or the directory it wrote."""
    return FileSource(
        matching_files(pattern, names=_NAMES),
        StreamFormat(f"wikiextractor headings={headings}", split_articles),
        ExtractedParser(headings))


def split_articles(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the articles of a file of either form: its first character tells which one it is."""
    first = b""
    while not first.strip(b" \t\r\n\xef\xbb\xbf"):
        line = file.readline(json_lines.LONGEST_LINE - len(first))
        if not line:
            return
        first += line
    rest = _Prefixed(first, file)
    is_json = first.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{")
    yield from (json_lines.split_lines if is_json else _split_tagged)(rest, path)


class _Prefixed:
    """A file some of whose first lines have been read already."""

    def __init__(self, read: bytes, file: typing.BinaryIO):
        self._read, self._file = read, file

    def readline(self, most: int) -> bytes:
        line, self._read = self._read, b""
        return line or self._file.readline(most)


def _split_tagged(file: _Prefixed, path: str) -> Iterator[DocumentPart]:
    """Yields what stands between tags, with them."""
    gathered: list[bytes] = []
    size = offset = start = 0
    for line in itertools.takewhile(bool, map(file.readline, itertools.repeat(1 << 20))):
        begins = line.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(_BEGIN)
        if begins and gathered:
            yield _without_end(path, start)
        if begins:
            gathered, size, start = [], 0, offset
        if begins or gathered:
            gathered.append(line)
            size += len(line)
        elif line.strip():
            yield damaged_stretch(path, f"{path}: the line at byte {offset} is neither JSON nor in "
                                  "a <doc ...>")
        if gathered and line.strip() == _END:
            content = b"".join(gathered)
            yield DocumentPart(content=content, key=key_of(content), path=path, offset=start)
            gathered = []
        elif size > json_lines.LONGEST_LINE:
            yield _without_end(path, start)
            gathered, size = [], 0
        offset += len(line)
    if gathered:
        yield _without_end(path, start)


def _without_end(path: str, start: int) -> DocumentPart:
    return damaged_stretch(path, f"{path}: the article at byte {start} has no end "
                           f"({_END.decode()})")


@dataclasses.dataclass(frozen=True)
class ExtractedParser:
    """Reads the lines of an article."""

    headings: bool

    def __call__(self, part: DocumentPart) -> Iterator[str]:
        """See `Parser`."""
        if part.content.lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
            found = json_lines.json_object(part)
            title = found.get("title", "")
            text = json_lines.string_of(found, "text", part)
        else:
            whole = decoded(part, "get a whole copy of the file").lstrip("\ufeff \t\r\n")
            first, _, text = whole.partition("\n")
            tag = _TITLE.match(first)
            title = tag[1] if tag else ""
            text = text.rstrip().removesuffix(_END.decode())
        lines = [html.unescape(line) for line in stripped(text)]
        titled = bool(lines) and lines[0] == html.unescape(str(title)).strip()
        return iter(lines[titled and not self.headings:])

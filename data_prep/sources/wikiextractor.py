"""What WikiExtractor makes of Wikipedia's dumps: articles between `<doc ...>` and `</doc>`."""

import dataclasses
import html
import itertools
import re
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, decoded, key_of, stripped
from data_prep.sources.files import FileSource, StreamFormat, damaged_stretch, matching_files
from electra_tf.platform.errors import UserError

_BEGIN, _END = b"<doc ", b"</doc>"
_TITLE = re.compile(r'<doc [^\n]*?\btitle="([^\n]*?)"(?: [a-z]+="[^\n]*?")*>')
_BEFORE = b" \t\r\n\xef\xbb\xbf"
_LONGEST_ARTICLE = 64 << 20
"""Bytes."""


def wikiextractor(pattern: str, headings: bool) -> FileSource:
    """Returns the source of WikiExtractor's articles, from a pattern or the directory it wrote."""
    return FileSource(
        matching_files(pattern, names="wiki_*"),
        StreamFormat(f"wikiextractor headings={headings}", split_articles),
        ExtractedParser(headings))


def split_articles(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields what stands between tags, with them."""
    gathered: list[bytes] = []
    size = offset = start = 0
    for line in itertools.takewhile(bool, map(file.readline, itertools.repeat(1 << 20))):
        if not offset and line.lstrip(_BEFORE).startswith(b"{"):
            raise UserError(f"{path} holds JSON lines; name it jsonl:{path}.")
        begins = line.lstrip(_BEFORE).startswith(_BEGIN)
        if begins and gathered:
            yield _without_end(path, start)
        if begins:
            gathered, size, start = [], 0, offset
        if begins or gathered:
            gathered.append(line)
            size += len(line)
        elif line.strip():
            yield damaged_stretch(path, f"{path}: the line at byte {offset} is not in a <doc ...>")
        if gathered and line.strip() == _END:
            content = b"".join(gathered)
            yield DocumentPart(content=content, key=key_of(content), path=path, offset=start)
            gathered = []
        elif size > _LONGEST_ARTICLE:
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
        whole = decoded(part, "get a whole copy of the file").lstrip("\ufeff \t\r\n")
        first, _, text = whole.partition("\n")
        tag = _TITLE.match(first)
        lines = [html.unescape(line)
                 for line in stripped(text.rstrip().removesuffix(_END.decode()))]
        titled = bool(tag and lines) and lines[0] == html.unescape(tag[1]).strip()
        return iter(lines[titled and not self.headings:])

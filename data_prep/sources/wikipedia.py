"""Wikipedia's (any MediaWiki's) dumps: XML with a page of wikitext after another.

Here pages are told apart as bytes; workers read their XML and their wikitext.
"""

import dataclasses
import functools
import io
import re
import typing
import xml.parsers.expat
from collections.abc import Iterable, Iterator

from data_prep.documents import DocumentPart, key_of
from data_prep.sources import compression
from data_prep.sources.files import FileSource, StreamFormat, damaged_stretch, matching_files
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

_BEGIN, _END, _LAST = b"<page>", b"</page>", b"</mediawiki>"
_CHUNK = 1 << 20
_LONGEST_PAGE = 64 << 20
"""Bytes; MediaWiki takes 2 MB of wikitext."""
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d+)\s*</ns>")
_REDIRECT = re.compile(rb"<redirect\b")
_REDIRECT_TEXT = re.compile(rb"<text[^>]*>\s*#REDIRECT\b", re.IGNORECASE)
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?<mediawiki\b[^>]*>"
                   rb"(?:\s*<siteinfo>.*?</siteinfo>)?", re.DOTALL)
_MEDIA = re.compile(rb'<namespace key="(-2|6|14)"[^>]*>([^<]+)</namespace>')
_HEADER = 1 << 17
"""Bytes of a dump in which its namespaces are named."""


def wikipedia(pattern: str, headings: bool) -> FileSource:
    """Returns the source of the articles of .xml dumps, with titles and `headings` or without.

    Raises:
        UserError: no file matches, or only the index matches.
    """
    paths = matching_files(pattern)
    dumps = tuple(path for path in paths if "-multistream-index" not in path.name)
    if not dumps:
        raise UserError(f"--input: {paths[0]} is the index of a dump, not the dump; name the file "
                        "that ends with .xml.bz2.")
    dropped = tuple(sorted(set().union(*map(_media_namespaces, dumps))))
    return FileSource(dumps, StreamFormat(f"wikipedia headings={headings}", split_articles),
                      ArticleParser(headings, dropped))


def _media_namespaces(path: Path) -> set[str]:
    """Returns what a wiki calls the namespaces of files and categories, in its language."""
    try:
        with path.open("rb") as raw:
            header = compression.opened(raw, path.name).read(_HEADER)
    except (OSError, *compression.CORRUPT) as error:
        if not compression.is_damage(error):
            raise compression.cannot_read(path, error) from error
        return set()  # Reading the documents says what is wrong.
    return {name.decode(errors="replace") for _, name in _MEDIA.findall(header)}


def split_articles(file: io.BufferedIOBase, path: str) -> Iterator[DocumentPart]:
    """Yields the raw pages of a dump that are articles, without other namespaces and redirects."""
    # read1 returns what comes before damage; read would drop it.
    for part in _pages(iter(functools.partial(file.read1, _CHUNK), b""), path):
        if part.damage or _is_article(part.content):
            yield part


def _is_article(page: bytes) -> bool:
    head = page[:page.find(b"<revision")]
    namespace = _NAMESPACE.search(head)
    if namespace is not None and namespace[1] != b"0":
        return False
    return not (_REDIRECT.search(head) or _REDIRECT_TEXT.search(page))


def _pages(chunks: Iterable[bytes], path: str) -> Iterator[DocumentPart]:
    for stretch in _stretches(chunks):
        header = None if stretch.offset else _HEAD.match(stretch.content)
        if not stretch.offset and not header:
            yield damaged_stretch(path, f"{path} doesn't begin as a MediaWiki dump in XML does, "
                                  "with <mediawiki, at byte 0")
        yield from _page(stretch, header.end() if header else 0, path)
    if not stretch.content.rstrip().endswith(_LAST):
        yield damaged_stretch(path, f"{path} is cut short: {_LAST.decode()} is missing behind "
                              f"byte {stretch.offset + len(stretch.content)}")


class _Stretch(typing.NamedTuple):
    """Bytes of a dump up to the end of a page, which isn't among them, or of the dump."""

    offset: int
    content: bytes
    ended: bool


def _stretches(chunks: Iterable[bytes]) -> Iterator[_Stretch]:
    offset, held = 0, b""
    for chunk in chunks:
        *ended, held = (held + chunk).split(_END)
        for content in ended:
            yield _Stretch(offset, content, True)
            offset += len(content) + len(_END)
        if len(held) > _LONGEST_PAGE:  # No page is so long; the memory stays flat.
            content, held = held[:-len(_END)], held[-len(_END):]
            yield _Stretch(offset, content, False)
            offset += len(content)
    yield _Stretch(offset, held, False)


def _page(stretch: _Stretch, header: int, path: str) -> Iterator[DocumentPart]:
    """Yields the page of a stretch, and damage before it.

    `header` is the number of first bytes that do not belong to pages.
    """
    offset, content, ended = stretch
    begin = content.rfind(_BEGIN)
    before = content[header:begin if begin >= 0 else len(content)].strip()
    if not ended and begin < 0:
        before = before.removesuffix(_LAST)
    if before or (ended and begin < 0):
        end = offset + (begin if begin >= 0 else len(content))
        yield damaged_stretch(path, f"{path}: what stands from byte {offset + header} to {end} is "
                              "no page")
    if begin >= 0 and ended:
        page = content[begin:] + _END
        yield DocumentPart(content=page, key=key_of(page), path=path, offset=offset + begin)
    elif begin >= 0:
        yield damaged_stretch(path, f"{path}: the page at byte {offset + begin} has no end "
                              f"({_END.decode()})")


@dataclasses.dataclass(frozen=True)
class ArticleParser:
    """Reads the prose of a page."""

    headings: bool
    namespaces: tuple[str, ...]
    """Of files and categories in the language of the wiki."""

    def __call__(self, part: DocumentPart) -> Iterator[str]:
        """See `Parser`."""
        from data_prep.sources import wikitext  # Here, for what reads wikitext takes 0.1 s to load.

        title, text = _read_page(part)
        try:
            lines = wikitext.prose(text, headings=self.headings, namespaces=self.namespaces)
        except wikitext.Unreadable as error:
            raise UserError(f"{part.path}: the wikitext of {shown(title)}, the page at byte "
                            f"{part.offset}, can't be read ({error}).") from error
        return iter([title, *lines] if self.headings and title and lines else lines)


def _read_page(part: DocumentPart) -> tuple[str, str]:
    """Returns title and wikitext of a page, of several revisions that of the last one."""
    found: dict[str, list[str]] = {"title": [], "text": []}
    open_elements: list[str] = []

    def start(name: str, _attributes: dict[str, str]) -> None:
        open_elements.append(name)
        if name in found:
            found[name] = []

    def text(content: str) -> None:
        if open_elements[-1] in found:
            found[open_elements[-1]].append(content)

    parser = xml.parsers.expat.ParserCreate("UTF-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda _name: open_elements.pop()
    try:
        parser.Parse(part.content, True)
    except xml.parsers.expat.ExpatError as error:
        raise UserError(
            f"{part.path}: the page at byte {part.offset} is no XML: "
            f"{xml.parsers.expat.ErrorString(error.code)} at byte "
            f"{part.offset + parser.ErrorByteIndex}; get a whole copy of the file.") from error
    return "".join(found["title"]).strip(), "".join(found["text"])

"""Reads dumps of Wikipedia and other MediaWikis: XML with pages of wikitext.

The reader splits pages as bytes; workers parse their XML and their wikitext.
"""

import functools
import html
import io
import re
import xml.parsers.expat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from data_prep.documents import DocumentPart, key_of
from data_prep.sources import files, wiki_names
from data_prep.sources.files import damaged_stretch
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

_BEGIN, _END, _LAST = b"<page>", b"</page>", b"</mediawiki>"
_CHUNK = 1 << 20
_LONGEST_PAGE = 64 << 20
"""Bytes; MediaWiki takes 2 MB of wikitext."""
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d+)\s*</ns>")
_REDIRECT = re.compile(rb"<redirect\b")
_REDIRECT_TEXT = re.compile(
    rb"<text[^>]*>\s*(?:#|\xef\xbc\x83)(?:REDIRECT\b|([^<\[\n]{1,80})\[\[)", re.IGNORECASE)
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?<mediawiki\b[^>]*>"
                   rb"(?:\s*<siteinfo>.*?</siteinfo>)?", re.DOTALL)
_MEDIA = re.compile(rb'<namespace key="(-2|6|14)"[^>]*>([^<]+)</namespace>')
_WIKI = re.compile(rb"""<mediawiki\b[^>]*?\bxml:lang=["']([a-z]+)|<dbname>([a-z]+?)wik""")
"""The language of a dump."""
_HEADER = 1 << 17
"""Bytes of a dump that name its namespaces."""


def wikipedia(pattern: str, headings: bool) -> files.FileSource:
    """Returns the source of the articles of .xml dumps, with titles and headings if `headings`.

    Raises `UserError` if no file matches, or if all are indexes of dumps.
    """
    paths = files.matching_files(pattern)
    dumps = tuple(path for path in paths if "-multistream-index" not in path.name)
    if not dumps:
        raise UserError(f"--input: {paths[0]} is the index of a dump, not the dump; name the file "
                        "that ends with .xml.bz2.")
    wikis = {str(path): _wiki_of(path) for path in dumps}
    return files.FileSource(dumps, f"wikipedia headings={headings}", split_articles,
                            functools.partial(parse_article, headings, wikis))


class Wiki(NamedTuple):
    """Properties of a wiki that change how its text is read."""

    namespaces: tuple[str, ...] = ()
    """Names of the namespaces of files and categories, besides the English ones."""
    variants: bool = False
    """True for languages with the markup of variants, -{...}-."""


def _wiki_of(path: Path) -> Wiki:
    """Returns the names in a dump's header, and those that its language adds."""
    try:
        with path.open("rb") as raw:
            header = files.unpacked(raw, path.suffix).read(_HEADER)
    except files.CORRUPT:
        return Wiki()  # `FileSource.documents` reports the damage.
    wiki = _WIKI.search(header)
    language = (wiki[1] or wiki[2]).decode() if wiki else ""
    own = {html.unescape(name.decode(errors="replace")) for _, name in _MEDIA.findall(header)}
    names = wiki_names.NAMESPACES.get(language, "").split()
    return Wiki(tuple(sorted(own.union(names))), language in wiki_names.VARIANTS)


def split_articles(file: io.BufferedIOBase, path: str) -> Iterator[DocumentPart]:
    """Yields the raw pages of a dump that are articles, without other namespaces and redirects."""
    # read1 returns the bytes before damage; read would drop them.
    for part in _pages(iter(functools.partial(file.read1, _CHUNK), b""), path):
        if part.damage or _is_article(part.content):
            yield part


def _is_article(page: bytes) -> bool:
    head = page[:page.find(b"<revision")]
    namespace = _NAMESPACE.search(head)
    if namespace is not None and namespace[1] != b"0":
        return False
    if _REDIRECT.search(head):
        return False
    text = _REDIRECT_TEXT.search(page)
    if text is None or text[1] is None:
        return text is None
    word = text[1].decode(errors="replace").strip().rstrip(":").strip()
    return word.replace(" ", "_").lower() not in wiki_names.REDIRECTS


def _pages(chunks: Iterable[bytes], path: str) -> Iterator[DocumentPart]:
    offset, held = 0, b""
    for chunk in chunks:
        *ended, held = (held + chunk).split(_END)
        for content in ended:
            yield from _page(content, offset, path)
            offset += len(content) + len(_END)
        if len(held) > _LONGEST_PAGE:  # Memory is bounded.
            yield damaged_stretch(path, f"{path}: the page at byte {offset} has no end "
                                  f"({_END.decode()})")
            offset += len(held) - len(_END)
            held = held[-len(_END):]
    rest = held.strip()
    if rest != _LAST and (offset or not _HEAD.match(rest) or not rest.endswith(_LAST)):
        yield damaged_stretch(path, (
            f"{path} is cut short: the content from byte {offset} on is not {_LAST.decode()}, the "
            "end of a MediaWiki dump") if offset or _HEAD.match(rest) else (
            f"{path} is not a MediaWiki dump, which begins with <mediawiki>"))


def _page(content: bytes, offset: int, path: str) -> Iterator[DocumentPart]:
    """Yields the page at the end of some bytes of a dump, and damage before it."""
    before, begin, page = content.rpartition(_BEGIN)
    before = before if begin else content
    header = None if offset else _HEAD.match(before)
    start = offset + len(before)
    if not begin or before[header.end() if header else 0:].strip() or not (offset or header):
        yield damaged_stretch(path, f"{path}: the content from byte {offset} to {start} is no page "
                              "of a MediaWiki dump")
    if begin:
        page = begin + page + _END
        yield DocumentPart(content=page, key=key_of(page), path=path, offset=start)


def parse_article(headings: bool, wikis: dict[str, Wiki], part: DocumentPart) -> Iterator[str]:
    """Returns a page's prose as its dump's wiki shows it; `UserError` for a damaged page."""
    from data_prep.sources import wikitext  # Its import takes 0.1 s.

    title, text = _read_page(part)
    wiki = wikis[part.path]
    try:
        lines = wikitext.prose(text, headings=headings, namespaces=wiki.namespaces,
                               variants=wiki.variants)
    except wikitext.UNREADABLE as error:
        raise UserError(f"{part.path}: the wikitext of {shown(title)}, the page at byte "
                        f"{part.offset}, is nested too deeply ({error}).") from error
    return iter([title, *lines] if headings and title and lines else lines)


def _read_page(part: DocumentPart) -> tuple[str, str]:
    """Returns title and wikitext of a page's last revision."""
    texts: dict[str, list[str]] = {"title": [], "text": []}
    open_elements: list[str] = []

    def start(name: str, _attributes: dict[str, str]) -> None:
        open_elements.append(name)
        if name in texts:
            texts[name] = []

    def text(content: str) -> None:
        if open_elements[-1] in texts:
            texts[open_elements[-1]].append(content)

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
    return "".join(texts["title"]).strip(), "".join(texts["text"])

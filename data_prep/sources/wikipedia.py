"""Reads dumps of Wikipedia and other MediaWikis: XML with pages of wikitext.

A dump's <siteinfo> names each namespace once. Languages of several scripts have other names for
them, those of MediaWiki (languages/messages/Messages*.php). English names are valid in every wiki.
"""

import functools
import html
import io
import re
from collections.abc import Collection, Iterator
from typing import Any
from xml.etree import ElementTree

from data_prep.documents import DocumentPart, key_of
from data_prep.sources import files
from data_prep.sources.files import damaged_stretch
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path

NAMESPACES = {
    "ja": "ファイル 画像 メディア カテゴリ",
    "sh": "Datoteka Slika Mediji Medija Kategorija Датотека Слика Медија Категорија",
    "sr": "Датотека Слика Медиј Медија Категорија Datoteka Slika Medij Medija Kategorija",
    "yue": "文件 檔 檔案 档 档案 圖 圖像 图 图像 媒體 媒体 分類 分类 類 类",
    "zh": "文件 图像 圖像 图片 圖片 档案 檔案 媒体 媒體 媒体文件 媒體文件 分类 分類"}
NAMESPACES |= dict.fromkeys(("gan", "lzh", "wuu"), NAMESPACES["zh"])  # Their fallback is zh.
"""Language -> other names of the namespaces of files, other media and categories that it uses."""
VARIANTS = frozenset("ban crh gan iu kk ku mni sh shi sr tg tly uz wuu zgh zh".split())
"""Languages whose pages have the markup of variants, -{...}-; kk had it in MediaWiki 1.39."""
_BEGIN, _END, _LAST = b"<page>", b"</page>", b"</mediawiki>"
_CHUNK = 1 << 20
_MAX_PAGE_BYTES = 64 << 20  # Bytes; MediaWiki takes 2 MB of wikitext.
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d+)\s*</ns>")
_REDIRECT = re.compile(rb"<redirect\b")
_REDIRECT_TEXT = re.compile(rb"<text[^>]*>\s*#REDIRECT\b", re.IGNORECASE)
_WORD_AND_LINK = re.compile(rb"<text[^>]*>\s*#[^\s\[]+\s*\[\[")
"""A redirect in any language, such as #WEITERLEITUNG [[B]]."""
_NOT_WIKITEXT = re.compile(rb"<model>(?!wikitext<)")
_PREFIX = re.compile(rb"<title>([^<:]+):")
_OTHER_NAMESPACES = re.compile(rb'<namespace key="-?[1-9]\d*"[^>]*>([^<]+)</namespace>')
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?<mediawiki\b[^>]*>"
                   rb"(?:\s*<siteinfo>.*?</siteinfo>)?", re.DOTALL)
_MEDIA = re.compile(rb'<namespace key="(-2|6|14)"[^>]*>([^<]+)</namespace>')
_WIKI = re.compile(rb"""<mediawiki\b[^>]*?\bxml:lang=["']([a-z]+)|<dbname>([a-z]+?)wik""")
"""The language of a dump."""
_HEADER = 1 << 17  # Bytes of a dump that name its namespaces.


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


def _wiki_of(path: Path) -> dict[str, Any]:
    """Returns the arguments of `wikitext.prose` that depend on a dump's wiki.

    The namespaces are those in the dump's header, and those that its language adds.
    """
    try:
        with path.open("rb") as raw:
            header = files.unpacked(raw, path.suffix).read(_HEADER)
    except files.CORRUPT:
        return {}  # `FileSource.documents` reports the damage.
    # The names of files and categories, in the wiki's language and in English.
    match = _WIKI.search(header)
    language = (match[1] or match[2]).decode() if match else ""
    names = {html.unescape(name.decode(errors="replace")) for _, name in _MEDIA.findall(header)}
    names.update(NAMESPACES.get(language, "").split())
    return {"namespaces": sorted(names), "variants": language in VARIANTS}


def split_articles(file: io.BufferedIOBase, path: str) -> Iterator[DocumentPart]:
    """Yields the raw pages of a dump that are articles, without other namespaces and redirects."""
    offset, rest = 0, b""
    prefixes: frozenset[bytes] = frozenset()
    # read1 returns the bytes before damage; read would drop them.
    while chunk := file.read1(_CHUNK):
        *pages, rest = (rest + chunk).split(_END)
        for content in pages:
            # Only the dump's head may precede a page.
            before, begin, page = content.rpartition(_BEGIN)
            before = before if begin else content
            header = None if offset else _HEAD.match(before)
            start = offset + len(before)
            prefixes = frozenset(_OTHER_NAMESPACES.findall(header[0])) if header else prefixes
            if (not begin or before[header.end() if header else 0:].strip()
                    or not (offset or header)):
                yield damaged_stretch(path, f"{path}: the content from byte {offset} to {start} is "
                                      "not a page of a MediaWiki dump")
            page = begin + page + _END
            if begin and _is_article(page, prefixes):
                yield DocumentPart(content=page, key=key_of(page), path=path, offset=start)
            offset += len(content) + len(_END)
        if len(rest) > _MAX_PAGE_BYTES:  # Memory is bounded.
            yield damaged_stretch(path, f"{path}: the page at byte {offset} has no end "
                                  f"({_END.decode()})")
            offset += len(rest) - len(_END)
            rest = rest[-len(_END):]
    # The dump must end with its closing tag.
    rest = rest.strip()
    if rest != _LAST and (offset or not _HEAD.match(rest) or not rest.endswith(_LAST)):
        yield damaged_stretch(path, (
            f"{path} is cut short: the content from byte {offset} on is not {_LAST.decode()}, the "
            "end of a MediaWiki dump") if offset or _HEAD.match(rest) else (
            f"{path} is not a MediaWiki dump, which begins with <mediawiki>"))


def _is_article(page: bytes, prefixes: Collection[bytes]) -> bool:
    """Returns True for wikitext of namespace 0; `prefixes` are the names of the others."""
    # Dumps before 2012 have no element of namespaces, but titles that begin with their names.
    head = page[:page.find(b"<revision")]
    namespace, prefix = _NAMESPACE.search(head), _PREFIX.search(head)
    if namespace:
        is_content = namespace[1] == b"0"
    else:
        is_content = not (prefix and prefix[1] in prefixes)
    # Dumps before 2010 have no element of redirects, but a word in their text.
    return is_content and not (
        _REDIRECT.search(head) or _REDIRECT_TEXT.search(page) or _NOT_WIKITEXT.search(page)
        or (namespace is None and _WORD_AND_LINK.search(page)))


def parse_article(headings: bool, wikis: dict[str, dict[str, Any]], part: DocumentPart
                  ) -> Iterator[str]:
    """Returns a page's prose as its dump's wiki shows it; `UserError` for a damaged page."""
    from data_prep.sources import wikitext  # Its import takes 0.1 s.

    # The title, and the text of the last of one or several revisions.
    try:
        page = ElementTree.fromstring(part.content)
    except ElementTree.ParseError as error:
        raise UserError(f"{part.path}: the page at byte {part.offset} is not XML: {error} of the "
                        "page; get a whole copy of the file.") from error
    title, text = (["", *(element.text or "" for element in page.iter(name))][-1]
                   for name in ("title", "text"))
    title = title.strip()
    try:
        lines = wikitext.prose(text, headings=headings, **wikis[part.path])
    except wikitext.UNREADABLE as error:
        raise UserError(f"{part.path}: the wikitext of {shown(title)}, the page at byte "
                        f"{part.offset}, is nested too deeply ({error}).") from error
    return iter([title, *lines] if headings and title and lines else lines)

"""Converts wikitext to prose: the lines of text that a reader of the article sees."""

import html
import re
from collections.abc import Callable, Iterable
from typing import Any

import mwparserfromhell
from mwparserfromhell import nodes
from mwparserfromhell.parser import ParserError

_DROPPED_TAGS = frozenset({
    "ref", "references", "table", "gallery", "math", "chem", "ce", "score", "timeline", "graph",
    "mapframe", "maplink", "imagemap", "hiero", "syntaxhighlight", "source", "pre", "indicator",
    "templatestyles", "templatedata", "inputbox", "categorytree", "section", "style", "script",
    "includeonly", "noinclude", "hr"})
"""Tags that hold no prose."""
_BLOCKS = frozenset({
    "br", "div", "p", "li", "ul", "ol", "dl", "blockquote", "center", "poem", "h1", "h2", "h3",
    "h4", "h5", "h6", "caption"})
"""HTML tags that begin and end lines."""
_NAMESPACES = ("file", "image", "media", "category")
"""Namespaces whose links are invisible; every wiki has their English names."""
_LANGUAGE = re.compile(r"\s*[a-z]{2,3}(-[a-z]+)*:")
"""A link to the article in another language."""
_QUOTES = re.compile("'{2,5}")
_SWITCH = re.compile("__[A-Z]+__")
_LEFT_OVER = re.compile(r"\[\[|\]\]|\{\{+|\}\}+|</?[a-zA-Z][^<>\n]{0,200}>")
_SPACES = re.compile(r"[^\S\n]+")
_HOLLOW = re.compile(r" ?[(\[][\s,;:–—-]*[)\]]")
_AFTER_BRACKET = re.compile(r"\([\s,;]+")
_BEFORE_MARK = re.compile(r" +([,;.)])")
_OF_A_TABLE = ("{|", "|", "!")
UNREADABLE = (ParserError, RecursionError)
"""Errors of wikitext that is nested too deeply."""


def prose(wikitext: str, *, headings: bool = False, namespaces: Iterable[str] = ()) -> list[str]:
    r"""Returns the lines of an article: paragraphs, list entries and, if `headings`, headings.

    It omits templates, tables, references, files, categories, formulas and code, and the brackets
    and commas left empty. `namespaces` are the wiki's names of files and categories.
    Raises one of `UNREADABLE`.

    Example:
        >>> prose("'''Ada''' ({{IPA|x}}; b. 1815)<ref>A</ref> met [[Charles Babbage|him]].\n* one")
        ['Ada (b. 1815) met him.', 'one']
    """
    names = {*_NAMESPACES, *(name.lower() for name in namespaces)}
    pieces: list[str] = []
    _Reader(names, headings, pieces.append).read(
        mwparserfromhell.parse(wikitext, skip_style_tags=True))
    lines = (_tidy(line) for line in "".join(pieces).split("\n"))
    return [line for line in lines if any(map(str.isalnum, line))]


class _Reader:
    """A reader of an article's nodes, which passes their prose to `write`."""

    def __init__(self, namespaces: set[str], headings: bool, write: Callable[[str], None]):
        self._namespaces, self._headings, self._write = namespaces, headings, write

    def read(self, tree: Any) -> None:
        for node in tree.nodes:
            reader = _READERS.get(type(node))
            if reader:
                reader(self, node)

    def text(self, node: nodes.Text) -> None:
        self._write(_QUOTES.sub("", _LEFT_OVER.sub("", node.value)))

    def entity(self, node: nodes.HTMLEntity) -> None:
        character = html.unescape(str(node))
        self._write(character.replace("\ufffd", ""))

    def heading(self, node: nodes.Heading) -> None:
        if self._headings:
            self._write("\n")
            self.read(node.title)
            self._write("\n")

    def link(self, node: nodes.Wikilink) -> None:
        title = str(node.title)
        namespace = title.partition(":")[0].strip().lower().replace("_", " ")
        if ":" in title and namespace in self._namespaces:
            return
        if node.text is not None:
            self.read(node.text)
        elif not _LANGUAGE.match(title):
            self._write(title.removeprefix(":"))

    def external_link(self, node: nodes.ExternalLink) -> None:
        if node.title is not None:
            self.read(node.title)

    def tag(self, node: nodes.Tag) -> None:
        name = str(node.tag).strip().lower()
        if name in _DROPPED_TAGS:
            return
        if name == "nowiki":
            self._write(html.unescape(str(node.contents or "")))
        elif node.wiki_markup:  # A list's mark; its text follows.
            self._write(" ")
        else:
            edge = "\n" if name in _BLOCKS else ""
            self._write(edge)
            if node.contents is not None:
                self.read(node.contents)
            self._write(edge)


_READERS: dict[type, Callable[[_Reader, Any], None]] = {
    nodes.Text: _Reader.text, nodes.HTMLEntity: _Reader.entity, nodes.Heading: _Reader.heading,
    nodes.Wikilink: _Reader.link, nodes.ExternalLink: _Reader.external_link,
    nodes.Tag: _Reader.tag}
"""Type of a node -> its reader; templates, their arguments and comments have none."""


def _tidy(line: str) -> str:
    """Returns a line without remaining markup and empty brackets."""
    if line.lstrip().startswith(_OF_A_TABLE):  # The table has no end.
        return ""
    line = _SPACES.sub(" ", _SWITCH.sub("", line))
    line = _AFTER_BRACKET.sub("(", _HOLLOW.sub("", line))
    return _BEFORE_MARK.sub(r"\1", _SPACES.sub(" ", line)).strip()

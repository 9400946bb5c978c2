"""Converts wikitext to prose: the lines of text that a reader of the article sees."""

import html
import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import mwparserfromhell
from mwparserfromhell import nodes
from mwparserfromhell.parser import ParserError

from data_prep.sources.wikipedia import VARIANTS

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
_SHOWN_TEXTS = {"lang": 1, "nowrap": 0, "nobr": 0, "w": -1}
"""Inline template -> index of the text that it shows."""
_MEASURES = ("convert", "cvt", "unité", "formatnum")
"""Templates of numbers, words between them, such as 3, "to" and 5, and perhaps their unit."""
_NUMBER = re.compile(r"[\d.,/+−–-]*|by|to|and|or|x|×|\+/-|±")
_LANGUAGE = re.compile(r"\s*[a-z]{2,3}(-[a-z]+)*:")  # A link to the article in another language.
_QUOTES = re.compile("'{2,5}")
_MEDIA_FILE = re.compile(
    r"[^:]+:[^:]+\.(?:jpe?g|png|svg|gif|tiff?|web[mp]|og[agv]|mp3|pdf|djvu)\s*", re.IGNORECASE)
"""The title of a file's page in any language."""
_LETTERS = r"[^\s_＿!-@[-`{-~]+"
_SWITCH = re.compile(rf"(__|＿＿)({_LETTERS}(?:_{_LETTERS})*)\1")
"""A behaviour switch such as __NOTOC__, which has a name in each language."""
_SWITCHES_OF_ANY_CASE = frozenset({"TOC", "NOTOC", "FORCETOC", "NOEDITSECTION", "NOGALLERY"})
_VARIANTS = re.compile(
    r"<!--.*?-->|<(math|chem|ce|nowiki|pre|source|syntaxhighlight)\b[^>]*(?<!/)>.*?</\1\s*>"
    r"|(?P<begin>-\{(?!\{(?!\{)))|(?P<end>(?:(?<!\})|(?<=\}\}))\}-)", re.DOTALL | re.IGNORECASE)
"""The marks of language variants, and what hides them: -{{ begins, and }}- ends, a template."""
_VARIANT_FLAGS = re.compile(r"[A-Z-]|[a-z]{2,3}(?:-[a-z]+)*", re.IGNORECASE)
_VARIANT = rf"(?:ike|{'|'.join(sorted(VARIANTS))})(?:-[a-z]+)*"
"""The name of a variant; "ike-latn" is one of Inuktitut, iu."""
_RULE = re.compile(rf"\s*(?:[^;]*?=>)?\s*({_VARIANT})\s*:", re.IGNORECASE)
_NEXT_RULE = re.compile(rf"(?<!&nbsp);(?=\s*(?:[^;]*?=>)?\s*{_VARIANT}\s*:|\s*$)", re.IGNORECASE)
_MAX_VARIANT_DEPTH = 20
_PREFERRED = ("zh", "zh-hans", "zh-cn", "zh-sg", "zh-my", "sr", "sr-ec", "sr-cyrl")
"""Variants in order of preference, before the first of a rule."""
_LEFT_OVER = re.compile(r"\[\[|\]\]|\{\{+|\}\}+|</?[a-zA-Z][^<>\n]{0,200}>")
_SPACES = re.compile(r"[^\S\n]+")
_HOLLOW = re.compile(r" ?[(\[（][\s,;:–—，；：、-]*[)\]）]")
_AFTER_BRACKET = re.compile(r"\([\s,;]+")
_BEFORE_MARK = re.compile(r" +([,;.)])")
UNREADABLE = (ParserError, RecursionError)  # Errors of wikitext that is nested too deeply.


def prose(wikitext: str, *, headings: bool = False, namespaces: Iterable[str] = (),
          variants: bool = False) -> list[str]:
    r"""Returns the lines of an article: paragraphs, list entries and, if `headings`, headings.

    It omits tables, references, files, categories, formulas and code, templates without a number or
    text of the sentence, and the brackets and commas left empty. `namespaces` are the wiki's names
    of files and categories. `variants` keeps one variant of -{...}-. Raises one of `UNREADABLE`.

    Example:
        >>> prose("'''Ada''' ({{IPA|x}}; b. 1815)<ref>A</ref> met [[Charles Babbage|him]].\n* one")
        ['Ada (b. 1815) met him.', 'one']
    """
    # Resolve language variants before parsing; the parser does not know them.
    names = {*_NAMESPACES, *(name.lower().replace("_", " ") for name in namespaces)}
    wikitext = one_variant(wikitext) if variants and "-{" in wikitext else wikitext
    # Parse the markup, and clean each line of prose.
    tree = mwparserfromhell.parse(wikitext, skip_style_tags=True)
    lines = []
    for line in "".join(_prose_of(tree, names, headings)).split("\n"):
        if line.lstrip().startswith(("{|", "|", "!")):  # Of a table without an end.
            continue
        # Words with small letters between underscores are text, not switches.
        line = _SWITCH.sub(lambda match: "" if match[2].upper() in (
            match[2], *_SWITCHES_OF_ANY_CASE) else match[0], line)
        line = _SPACES.sub(" ", line)
        line = _AFTER_BRACKET.sub("(", _HOLLOW.sub("", line))
        line = _BEFORE_MARK.sub(r"\1", _SPACES.sub(" ", line)).strip()
        if any(map(str.isalnum, line)):
            lines.append(line)
    return lines


def _prose_of(tree: Any, namespaces: Collection[str], headings: bool) -> Iterator[str]:
    """Yields the prose of an article's nodes; comments and most templates have none."""
    for node in tree.nodes:
        # Text is yielded; `inner` is read the same way, between line ends for blocks.
        inner, edge = None, ""
        match node:
            case nodes.Text():
                yield _QUOTES.sub("", _LEFT_OVER.sub("", node.value))
            case nodes.HTMLEntity():
                yield html.unescape(str(node)).replace("\ufffd", "")
            case nodes.Heading() if headings:
                inner, edge = node.title, "\n"
            case nodes.Wikilink():
                # Links to files and categories are invisible; others show a text or their title.
                title = str(node.title)
                namespace = title.partition(":")[0].strip().lower().replace("_", " ")
                if ":" in title and (namespace in namespaces or _MEDIA_FILE.fullmatch(title)):
                    continue
                inner = node.text
                if inner is None and not _LANGUAGE.match(title):
                    yield title.removeprefix(":")
            case nodes.ExternalLink():
                inner = node.title
            case nodes.Template():
                inner = _shown(node)
            case nodes.Tag():
                name = str(node.tag).strip().lower()
                if name in _DROPPED_TAGS:
                    continue
                if name == "nowiki":
                    yield html.unescape(str(node.contents or ""))
                elif node.wiki_markup:  # A list's mark; its text follows.
                    yield " "
                else:
                    inner, edge = node.contents, "\n" if name in _BLOCKS else ""
        yield edge
        if inner is not None:
            yield from _prose_of(inner, namespaces, headings)
        yield edge


def _shown(template: nodes.Template) -> Any:
    """Returns the prose that an inline template shows, or None for one that isn't known."""
    name, _, number = str(template.name).strip().lower().partition(":")
    texts = [number] if name == "formatnum" else [
        param.value for param in template.params if str(param.name).strip().isdecimal()]
    if name in _MEASURES:
        words = [str(text).strip() for text in texts]
        num_numbers = len([*itertools.takewhile(_NUMBER.fullmatch, words)])
        return mwparserfromhell.parse(" ".join(words[:num_numbers + 1]))
    index = _SHOWN_TEXTS.get(name, len(texts))
    return texts[index] if index < len(texts) and texts else None


def one_variant(wikitext: str) -> str:
    """Returns wikitext with one language variant of each -{...}-, and without hidden rules.

    It follows MediaWiki's LanguageConverter, but D (a list of all variants) has one variant too,
    and a mark without an end ends with its line. Rules of A and H do not change other text.

    >>> one_variant("在-{zh-tw:軟體; zh-cn:软件}-领域-{H|zh-cn:a;zh-tw:b}-，-{高雄}-")
    '在软件领域，高雄'
    """
    # A stack of open marks: a closed one adds what is chosen of its content to the one around it.
    pieces: list[list[str]] = [[]]
    end = 0
    for match in _VARIANTS.finditer(wikitext):
        pieces[-1].append(wikitext[end:match.start()])
        end = match.end()
        if match["begin"] and len(pieces) <= _MAX_VARIANT_DEPTH:
            pieces.append([])
        elif not match["end"]:
            pieces[-1].append(match[0])
        elif len(pieces) > 1:
            content = "".join(pieces.pop())
            pieces[-1].append(_chosen_variant(content))
    pieces[-1].append(wikitext[end:])
    # Marks without an end end with their line.
    for unclosed in pieces[1:]:
        line, line_end, rest = "".join(unclosed).partition("\n")
        pieces[0] += [_chosen_variant(line), line_end, rest]
    return "".join(pieces[0])


def _chosen_variant(content: str) -> str:
    """Returns what a reader sees of the content of -{...}-."""
    # -{flags|rules}-: hidden rules, raw text, or the preferred variant of the rules.
    before, bar, rest = content.partition("|")
    flags = {flag.strip() for flag in before.split(";")} - {""}
    if not bar or not all(map(_VARIANT_FLAGS.fullmatch, flags)):  # The bar is a link's or none.
        flags, rest = set(), content
    if flags & {"H", "-", "N"} or flags == {"T"}:
        return ""
    if "R" in flags or any(len(flag) > 1 for flag in flags):
        return rest
    rules = [(_RULE.match(rule), rule) for rule in _NEXT_RULE.split(rest) if rule.strip()]
    if not rules or not all(match for match, _ in rules):
        return rest
    texts = {match[1].lower(): rule[match.end():].strip() for match, rule in reversed(rules)}
    return next((texts[name] for name in _PREFERRED if name in texts), list(texts.values())[-1])

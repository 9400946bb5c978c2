"""The sources of text by name, and --input's way to them."""

from collections.abc import Callable

from data_prep.documents import ParserBySource, SkippingParser
from data_prep.sources import columns, data_sets, grammar, hub, json_lines
from data_prep.sources.books import books
from data_prep.sources.embedded import TEXTS, EmbeddedText
from data_prep.sources.files import matching_files
from data_prep.sources.grammar import TEXT, Entry
from data_prep.sources.plain_text import text_files
from data_prep.sources.several import Member, Mixture, Sequence
from data_prep.sources.source import Options, Source
from data_prep.sources.wikiextractor import wikiextractor
from data_prep.sources.wikipedia import wikipedia
from electra_tf.platform.errors import UserError, shown


def _embedded(entry: Entry, _options: Options) -> Source:
    if entry.pattern not in TEXTS:
        raise UserError(f"--input: the embedded texts are {', '.join(TEXTS)}. Received: "
                        f"{shown(entry.said)}")
    return EmbeddedText(entry.pattern)


SOURCES: dict[str, Callable[[Entry, Options], Source]] = {
    TEXT: lambda entry, options: text_files(matching_files(entry.pattern)),
    "wikipedia": lambda entry, options: wikipedia(entry.pattern, options.headings),
    "wikiextractor": lambda entry, options: wikiextractor(entry.pattern, options.headings),
    "books": lambda entry, options: books(entry.pattern),
    "jsonl": lambda entry, options: json_lines.json_lines(
        entry.pattern, entry.field or json_lines.TEXT_FIELD),
    "parquet": lambda entry, options: columns.columns(
        entry.pattern, entry.field or columns.TEXT_COLUMN),
    "hf": lambda entry, options: hub.hub_data_set(
        entry.pattern, entry.field or columns.TEXT_COLUMN),
    "tfds": lambda entry, options: data_sets.data_set(
        entry.pattern, entry.field or data_sets.TEXT_FEATURE, options),
    "embedded": _embedded,
}
"""Name -> what opens it."""
_WITH_FIELD = ("jsonl", "parquet", "hf", "tfds")


def open_source(text: str, options: Options = Options()) -> Source:  # noqa: B008 (frozen)
    """Returns the source that --input names; see `grammar`.

    Raises:
        UserError: it is ambiguous, a pattern matches no file, or all files are empty.
    """
    entries = grammar.entries_of(text, SOURCES, _WITH_FIELD)
    source = _put_together(entries, options)
    if options.skip_damaged:
        source.parse = SkippingParser(source.parse)
    return source


def _put_together(entries: tuple[Entry, ...], options: Options) -> Source:
    mixed = any(entry.share for entry in entries)
    if not mixed and all(entry.source == TEXT for entry in entries):
        return text_files(matching_files(*(entry.pattern for entry in entries)))
    total = sum(entry.share for entry in entries)
    members = tuple(
        Member(source=SOURCES[entry.source](entry, options), name=entry.said, number=number,
               share=entry.share / total if mixed else 0.0)
        for number, entry in enumerate(entries))
    if len(members) == 1:
        return members[0].source
    parse = ParserBySource(tuple(member.source.parse for member in members))
    return Mixture(members, parse) if mixed else Sequence(members, parse)

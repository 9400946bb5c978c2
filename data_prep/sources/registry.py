"""Parses --input by this grammar, and opens its sources.

    input   = entry ("," entry)*
    entry   = [source ":"] pattern ["#" field] [":" share]
    source  = one of the names in `SOURCES`; plain text if there is none
    pattern = a path or URL, with * ? [...] and ** as the shell has them; a name for hf, tfds and
              embedded
    field   = the name of the field that contains the text; for jsonl, parquet, hf and tfds only
    share   = a number above 0; for every entry or for none
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Callable

from data_prep.documents import SkippingParser, parse_by_source, parse_plain_text
from data_prep.sources import data_sets, fields, plain_text
from data_prep.sources.embedded import EmbeddedText
from data_prep.sources.files import FileSource, matching_files
from data_prep.sources.source import ConcatenatedSource, Member, Mixture, Source, SourceOptions
from data_prep.sources.wikipedia import wikipedia
from electra_tf.core import storage
from electra_tf.core.errors import UserError, shown
from electra_tf.core.file_kinds import require_text

TEXT = "text"
_WITH_FIELD = ("jsonl", "parquet", "hf", "tfds")
_SHARE = re.compile(r"(?P<rest>.*):(?P<share>\d+\.?\d*|\.\d+)", re.DOTALL)
_MAX_SHARE = 1_000_000
_NAMED = re.compile(r"(?P<source>[A-Za-z]\w*):(?!//)(?P<rest>.*)", re.DOTALL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputEntry:
    """An entry of --input, which names one source."""

    text: str  # The entry without its share.
    source: str = TEXT
    pattern: str
    field: str = "text"
    share: float = 0.0  # 0 if the entry has none.

    @property
    def is_named(self) -> bool:
        """Returns True if the entry has a source name."""
        return self.text != self.pattern


SOURCES: dict[str, Callable[[InputEntry, SourceOptions], Source]] = {
    TEXT: lambda entry, options: _text_files(entry),
    "wikipedia": lambda entry, options: wikipedia(entry.pattern, options.wiki_headings),
    "books": lambda entry, options: FileSource(
        matching_files(entry.pattern, names=plain_text.BOOK_FILES), "books",
        plain_text.split_book, plain_text.parse_book),
    "jsonl": lambda entry, options: FileSource(
        matching_files(entry.pattern), f"jsonl#{entry.field}",
        functools.partial(fields.split_lines, entry.field),
        functools.partial(fields.parse_object, entry.field), fields.require_json_lines),
    "parquet": lambda entry, options: FileSource(
        matching_files(entry.pattern), f"parquet#{entry.field}",
        functools.partial(fields.read_rows, entry.field), parse_plain_text, None),
    "hf": lambda entry, options: data_sets.hub_data_set(entry.pattern, entry.field),
    "tfds": lambda entry, options: data_sets.TfdsSource(entry.pattern, entry.field, options),
    "embedded": lambda entry, options: EmbeddedText(entry.pattern),
}
"""Name -> the function that opens the source."""


def open_source(text: str, options: SourceOptions = SourceOptions()) -> Source:  # noqa: B008 (frozen)
    """Returns the source that --input names; `UserError` for an ambiguous or unreadable one."""
    # Plain text alone is one source; several sources are concatenated or, with shares, mixed.
    entries = entries_of(text)
    total = sum(entry.share for entry in entries)
    if not total and all(entry.source == TEXT for entry in entries):
        source = _text_files(*entries)
    elif len(entries) == 1:
        source = SOURCES[entries[0].source](entries[0], options)
    else:
        members = tuple(Member(source=SOURCES[entry.source](entry, options), name=entry.text,
                               number=number, share=entry.share / total if total else 0.0)
                        for number, entry in enumerate(entries))
        # The same file in another format, or by another field, is another text.
        texts = collections.Counter(text for member in members for text in (
            [(member.source.name, str(path.resolve())) for path in member.source.paths]
            if isinstance(member.source, FileSource) else [("", member.name)]))
        (_, name), count = texts.most_common(1)[0]
        if count > 1:
            raise UserError(f"--input names {shown(name)} twice, and its documents would be read "
                            "twice; name it once.")
        parsers = tuple(member.source.parse for member in members)
        combined = Mixture if total else ConcatenatedSource
        source = combined(members, functools.partial(parse_by_source, parsers))
    if options.on_error == "skip":
        source.parse = SkippingParser(source.parse)
    return source


def entries_of(text: str) -> tuple[InputEntry, ...]:
    """Returns the entries of --input; `UserError` if there is none, or one is ambiguous."""
    parts = [text] if "," in text and storage.matching(text) else text.split(",")
    entries = tuple(_entry(part) for part in filter(None, map(str.strip, parts)))
    if not entries:
        raise UserError("--input is empty; give file patterns separated by commas, or "
                        "embedded:python for Python's own documentation.")
    # All entries have a share or none has; all have a name or none has.
    without = [entry for entry in entries if not entry.share]
    if 0 < len(without) < len(entries):
        raise UserError(f"--input: {shown(without[0].text)} has no share and others have; give "
                        f"every source one ({without[0].text}:0.5), or none.")
    bare = [entry for entry in without if not entry.is_named]
    if 0 < len(bare) < len(entries):
        raise UserError(
            f"--input: {shown(bare[0].text)} has no source name and others have, so its source is "
            f"ambiguous; write text:{bare[0].text} or another source's name.")
    return entries


def _text_files(*entries: InputEntry) -> FileSource:
    """Returns the source of plain text files; entries with the name `text` also take markup."""
    return FileSource(
        matching_files(*(entry.pattern for entry in entries)), "", plain_text.split_text,
        parse_plain_text, require_text if entries[0].is_named else plain_text.require_plain_text)


def _entry(entry: str) -> InputEntry:
    # The share, unless the whole entry is the name of a file.
    text, share = entry, 0.0
    if (match := _SHARE.fullmatch(entry)) and match["rest"]:
        text, share = match["rest"], float(match["share"])
        if storage.matching(entry) or text in SOURCES:
            raise UserError(f"--input: {shown(entry)} could be a path that ends with a number or a "
                            f"source with the share {share:g}; write ./PATH:1 for the path with a "
                            "share, or rename the file.")
        if not 0 < share <= _MAX_SHARE:
            raise UserError(f"--input: a share must be in (0, {_MAX_SHARE}]. Received: "
                            f"{shown(entry)}")
    # The source's name, unless "name:" begins a path; then the pattern and its field.
    if not (match := _NAMED.fullmatch(text)) or (
            match["source"] not in SOURCES and storage.matching(text)):
        return InputEntry(text=text, pattern=text, share=share)
    source, pattern = match["source"], match["rest"]
    if source not in SOURCES:
        raise UserError(f"--input: no file matches {shown(text)}, and {shown(source)} is no "
                        f"source; the sources are {', '.join(SOURCES)}.")
    field = InputEntry.field
    if source in _WITH_FIELD and "#" in pattern:
        pattern, _, field = pattern.rpartition("#")
    if not pattern or not field:
        raise UserError(f"--input: {shown(text)} must be {source}:PATTERN"
                        f"{'#FIELD' * (source in _WITH_FIELD)}; see docs/how_to/data.md.")
    return InputEntry(text=text, source=source, pattern=pattern, field=field, share=share)

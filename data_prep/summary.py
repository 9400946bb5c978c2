"""What a person should know of a finished build: a table, notes and warnings."""

from electra_tf.data.manifest import SPLITS, Manifest
from electra_tf.platform import errors
from electra_tf.text import coverage

_LONGEST_NAME = 60
"""Characters of a source in the summary."""
_SHOWN = 10
"""Number of skipped documents whose messages are printed."""
_DOCUMENTS = {
    "languages": ("  other-language documents", "other_language_documents"),
    "drop_near_duplicates": ("  near-duplicate documents", "near_duplicate_documents"),
}
_LINES = {
    "drop_letterless_lines": ("  lines without letters", "letterless_lines"),
    "drop_boilerplate": ("  boilerplate lines", "boilerplate_lines"),
    "min_line_characters": ("  lines too short or too long", "short_or_long_lines"),
    "max_line_characters": ("  lines too short or too long", "short_or_long_lines"),
    "drop_duplicate_lines": ("  repeated lines", "duplicate_lines"),
    "decontaminate_sha256": ("  lines with test texts", "contaminated_lines"),
}
"""Setting of a build -> what went by it, and its name in the counts."""


def table(result: Manifest, seconds: float) -> str:
    """Returns the table that ends a build, for a reader who sees it for the first time."""
    counts = result.counts
    cleaned = _cleaning_rows(result)
    rows = [
        ("documents; lines, words left" if cleaned else "documents, lines, words read",
         f"{counts.documents:,}, {counts.lines:,}, {counts.words:,}"),
        *((("damaged documents skipped", f"{counts.skipped_documents:,}"),)
          if counts.skipped_documents else ()),
        *_text_rows(result, cleaned),
        ("tokens of the text", f"{counts.text_tokens:,}"),
        ("  of which in the examples", _percent(counts.content_tokens, counts.text_tokens)),
        *((f"{split} examples, shards",
           f"{sum(s.examples for s in result.shards_of(split)):,}, "
           f"{len(result.shards_of(split))}") for split in SPLITS),
        ("positions per example", f"{result.max_seq_length}"),
        ("  of which padding",
         _percent(counts.padding_positions, counts.examples * result.max_seq_length)),
        ("examples of one segment", _percent(counts.single_segment_examples, counts.examples)),
        ("size of the shards", f"{sum(s.bytes for s in result.shards) / 1e6:,.1f} MB"),
        ("time", f"{seconds:.1f} s ({counts.content_tokens / seconds:,.0f} tokens/s)"),
    ]
    return "\n".join(f"{name:<29} {value}" for name, value in rows)


def _text_rows(result: Manifest, cleaned: list[tuple[str, str]]
               ) -> list[tuple[str, str]]:
    """Returns how much text there was, from which source, and what cleaning left of it."""
    read = result.counts.text_bytes + result.counts.dropped_text_bytes
    rows = [("text read", f"{read / 1e6:,.1f} MB"), *_source_rows(result)]
    if not cleaned:
        return rows
    left = [("text left", f"{result.counts.text_bytes / 1e6:,.1f} MB"), *cleaned]
    return [*rows, *left] if result.sources else left


def _source_rows(result: Manifest) -> list[tuple[str, str]]:
    """Returns how much of the text came from each of several sources, and what was asked for."""
    whole = sum(source.text_bytes for source in result.sources)
    rows = []
    for source in result.sources:
        asked = f", {_percent(source.share, 1)} asked for" if source.share else ""
        rows.append((f"  of which {errors.one_line(source.name, longest=_LONGEST_NAME)}",
                     f"{_percent(source.text_bytes, whole)}{asked}, "
                     f"{source.text_bytes / 1e6:,.1f} MB, {source.documents:,} documents"))
    return rows


def _cleaning_rows(result: Manifest) -> list[tuple[str, str]]:
    """Returns names and values; none for a build without cleaning that drops something."""
    counts, on = result.counts, result.settings
    found = [(name, _part(getattr(counts, field), counts.documents))
             for measure, (name, field) in _DOCUMENTS.items() if measure in on]
    lines = counts.lines + counts.lines_of_dropped_documents + sum(
        getattr(counts, field) for field in {field for _, field in _LINES.values()})
    if found:
        found.append(("  lines in these", _part(counts.lines_of_dropped_documents, lines)))
    found += [(name, _part(getattr(counts, field), lines)) for name, field in dict.fromkeys(
        row for measure, row in _LINES.items() if measure in on)]
    if not found:
        return []
    dropped, whole = counts.dropped_text_bytes, counts.dropped_text_bytes + counts.text_bytes
    return [("text dropped by cleaning", f"{dropped / 1e6:,.1f} MB ({_percent(dropped, whole)} of "
             f"{whole / 1e6:,.1f})"), *found]


def held_out_note(result: Manifest) -> str:
    """Returns what a person should know of the held-out documents; "" if nothing is unusual."""
    documents, fraction = result.counts.documents, result.settings["held_out_fraction"]
    if not fraction:
        return "no document was held out, so --mode=eval has nothing to read (--held_out_fraction)."
    if not result.shards_of("eval"):
        return ("no document was held out, so --mode=eval has nothing to read: the text is a "
                "single document. Put blank lines between documents, or give several files.")
    if documents <= round(1 / fraction) // 2:
        return (f"1 of the {documents} documents was held out for --mode=eval; "
                f"--held_out_fraction={fraction:g} of so few would be none "
                "(--held_out_fraction=0 keeps all for training).")
    return ""


def warnings(result: Manifest) -> list[str]:
    """Returns what was skipped, and what is wrong between the text and how it was tokenized."""
    counts = result.counts
    found = [coverage.unknown_warning(counts.unknown_words, counts.tokenizer_words)]
    if result.vocabulary.normalization.strip_accents:
        found.append(coverage.changed_warning(counts.changed_characters, counts.characters))
    if skipped := counts.skipped_documents:
        lines = [f"{skipped:,} damaged document{'s' * (skipped != 1)} skipped (--on_error=skip):",
                 *(f"  {errors.one_line(message)}" for message in result.skipped[:_SHOWN])]
        others = skipped - len(lines) + 1
        found.insert(0, "\n".join([*lines, *[f"  and {others:,} more"] * bool(others)]))
    return list(filter(None, found))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.2f} %"


def _part(part: int, whole: int) -> str:
    return f"{part:,} ({_percent(part, whole)} of {whole:,})"

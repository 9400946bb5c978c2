"""What cleaning did, as rows of the summary of a build."""

from electra_tf.data.manifest import Counts, Manifest

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


def rows(result: Manifest) -> list[tuple[str, str]]:
    """Returns names and values; none for a build without cleaning that drops something."""
    counts, on = result.counts, result.settings
    found = [(name, _part(getattr(counts, field), counts.documents))
             for measure, (name, field) in _DOCUMENTS.items() if measure in on]
    lines = dropped_lines(counts) + counts.lines
    if found:
        found.append(("  lines in these", _part(counts.lines_of_dropped_documents, lines)))
    found += [(name, _part(getattr(counts, field), lines)) for name, field in dict.fromkeys(
        row for measure, row in _LINES.items() if measure in on)]
    if not found:
        return []
    return [("text dropped by cleaning", _megabytes(counts)), *found]


def dropped_lines(counts: Counts) -> int:
    """Returns how many lines cleaning dropped."""
    return counts.lines_of_dropped_documents + sum(
        getattr(counts, field) for field in {field for _, field in _LINES.values()})


def _megabytes(counts: Counts) -> str:
    dropped, whole = counts.dropped_text_bytes, counts.dropped_text_bytes + counts.text_bytes
    return f"{dropped / 1e6:,.1f} MB ({100 * dropped / max(1, whole):.2f} % of {whole / 1e6:,.1f})"


def _part(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / max(1, whole):.2f} % of {whole:,})"

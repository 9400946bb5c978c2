"""Reports a finished build as a table, notes and warnings."""

from electra_tf.core import errors
from electra_tf.data.manifest import Manifest
from electra_tf.data.records import SPLITS
from electra_tf.text import coverage

_LINES = ("lines_of_dropped_documents", "letterless_lines", "short_or_long_lines",
          "duplicate_lines", "contaminated_lines")
"""Fields of `manifest.Counts` for the lines that cleaning dropped."""


def table(result: Manifest, seconds: float) -> str:
    """Returns the table of a build's counts."""
    counts = result.counts
    # Dropped lines as fractions of all lines, dropped bytes as a fraction of all bytes.
    cleaned: list[tuple[str, str]] = []
    if dropped := counts.dropped_text_bytes:
        lines = counts.lines + sum(getattr(counts, name) for name in _LINES)
        totals = {"near_duplicate_documents": counts.documents} | dict.fromkeys(_LINES, lines)
        cleaned = [("text dropped by cleaning", f"{dropped / 1e6:,.1f} MB "
                    f"({_percent(dropped, dropped + counts.text_bytes)})"),
                   *((f"  {name.replace('_', ' ')}",
                      f"{number:,} ({_percent(number, total)} of {total:,})")
                     for name, total in totals.items() if (number := getattr(counts, name)))]
    # Rows of parts of a whole are indented below it.
    source_bytes = sum(source.text_bytes for source in result.sources)
    rows = [
        ("documents; lines, words left" if cleaned else "documents, lines, words read",
         f"{counts.documents:,}, {counts.lines:,}, {counts.words:,} (between spaces)"),
        *((("damaged documents skipped", f"{counts.skipped_documents:,}"),)
          if counts.skipped_documents else ()),
        ("text read", f"{(counts.text_bytes + counts.dropped_text_bytes) / 1e6:,.1f} MB"),
        *((f"  of which {source.name}",
           f"{_percent(source.text_bytes, source_bytes)}, {source.text_bytes / 1e6:,.1f} MB, "
           f"{source.documents:,} documents") for source in result.sources),
        *cleaned,
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


def held_out_note(result: Manifest) -> str:
    """Returns a note if no document, or one of few documents, is held out; "" otherwise."""
    documents, fraction = result.counts.documents, result.settings["held_out_fraction"]
    if not result.shards_of("eval"):
        return "no document was held out, so --mode=eval of run_pretraining.py has no examples" + (
            " (--held_out_fraction)." if not fraction else
            ": the text is a single document. Put blank lines between documents, or give several "
            "files." if documents == 1 else
            ": cleaning dropped the held-out documents." if result.counts.dropped_text_bytes else
            f": its {documents:,} documents are equal or begin alike, and equal documents are in "
            "one split. Give different documents, separated by blank lines.")
    # Less than half a document, of which one was held out nevertheless.
    if documents <= round(1 / fraction) // 2:
        return (f"1 of the {documents} documents was held out for --mode=eval of "
                f"run_pretraining.py; --held_out_fraction={fraction:g} is less than one document. "
                "--held_out_fraction=0 holds out none.")
    return ""


def warnings(result: Manifest) -> list[str]:
    """Returns warnings of skipped documents, unknown words and changed letters."""
    counts = result.counts
    strips = result.vocabulary.normalization.strip_accents
    texts = coverage.coverage_warnings(
        counts.tokenizer_words, counts.unknown_words, counts.characters,
        counts.changed_characters if strips else 0)
    if skipped := counts.skipped_documents:
        lines = [f"{skipped:,} damaged document{'s' * (skipped != 1)} skipped (--on_error=skip):",
                 *(f"  {errors.one_line(message)}" for message in result.skipped)]
        others = skipped - len(result.skipped)
        lines += [f"  and {others:,} more"] if others else []
        texts.insert(0, "\n".join(lines))
    return texts


def _percent(part: int, total: int) -> str:
    return f"{100 * part / max(1, total):.2f} %"

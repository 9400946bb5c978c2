"""What a survey says, as tables: the terminal and the page show the same ones."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from electra_tf.apps.inspection.survey import Survey, Text
from electra_tf.platform.errors import one_line
from electra_tf.text import coverage
from electra_tf.text.vocabulary import SPECIAL_TOKENS

SPLIT_NAMES = {"train": "training", "eval": "held out"}
_BINS = 8
_TOP, _RARE = 40, 30
"""Pieces that are shown."""
_UNKNOWN_COUNTED = "[UNK]: counted when the records were built, over all of the text."
_UNKNOWN_BESIDE = (
    "[UNK]: by the script of the nearest word with letters before it, or else after it, for these "
    "records don't say what stood there; build them again to have that counted.")
_NOTHING_BESIDE = "no words beside"
_FIXED = "\u00a0"
"""Between a piece and its number: no line ends there."""
_FREQUENCIES = (("never", 0, 1), ("1 to 9 times", 1, 10), ("10 to 99 times", 10, 100),
                ("100 to 999 times", 100, 1000), ("1,000 times and more", 1000, np.inf))
_LONGEST_NAME = 60
"""Characters of a source."""
_MUCH = {"padding": 0.1, "repeated": 0.05, "leaked": 0.01, "unused": 0.1}
"""Shares from which on a remark is made."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text; the first column is what a row is about, the others are numbers or words."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    heading: tuple[str, ...] = ()
    """Of the columns; empty where they explain themselves: facts, a name and words."""
    bars: tuple[float, ...] = ()
    """Length of each row's bar, in [0, 1]."""
    notes: tuple[str, ...] = ()
    """What must be known to read it."""


def tables(found: Survey) -> list[Table]:
    """Returns all that a survey says, in the order in which a reader wants it."""
    return [_records(found), _lengths(found), _words(found), _pieces(found), _repeated(found)]


def remarks(found: Survey) -> list[str]:
    """Returns what is unusual and can be mended, with how; empty if nothing is."""
    counts, manifest = found.records.manifest.counts, found.records.manifest
    lines = [coverage.unknown_warning(counts.unknown_words, counts.tokenizer_words)]
    if not found.records.examples("train"):
        lines.append("There are no training examples: build with more text, or hold out less.")
    if not found.records.examples("eval"):
        lines.append("No examples are held out, so --mode=eval of run_pretraining.py has nothing "
                     "to read (--held_out_fraction of build_pretraining_data).")
    positions = counts.examples * manifest.max_seq_length
    if counts.padding_positions > _MUCH["padding"] * positions:
        lines.append(f"{percent(counts.padding_positions, positions)} of the positions are padding "
                     "and cost time: --packing=full leaves none.")
    repetition = found.repetition
    if repetition.passages.copies > _MUCH["repeated"] * max(1, repetition.passages.total):
        lines.append(
            f"{percent(repetition.passages.copies, repetition.passages.total)} of the training "
            "text is there before: --drop_near_duplicates and --drop_duplicate_lines of "
            "build_pretraining_data take copies out.")
    held_out = repetition.held_out
    if held_out is not None and held_out.seen_passages.mean() > _MUCH["leaked"]:
        lines.append(
            f"{percent(held_out.seen_passages.sum(), held_out.seen_passages.size)} of the held-out "
            "text is in the training examples, too, so evaluations look better than they are: "
            "--drop_near_duplicates takes copies of documents out.")
    unused = np.count_nonzero(found.pieces == 0)
    if found.complete and unused > _MUCH["unused"] * found.pieces.size:
        lines.append(f"{percent(unused, found.pieces.size)} of the vocabulary never occurs and is "
                     "learned in vain: learn one from this text with "
                     "`python -m data_prep.build_vocab`.")
    return [line for line in lines if line]


def percent(part: float, whole: float) -> str:
    """Returns a share as a person reads it.

    >>> percent(1, 3), percent(1, 1000), percent(1, 10**6), percent(0, 5), percent(0, 0)
    ('33.3 %', '0.10 %', '0.0001 %', '0 %', '-')
    """
    if not whole:
        return "-"
    share = 100 * part / whole
    if share == 0 or share == 100:
        return f"{share:.0f} %"
    if share > 99.95:
        return ">99.9 %"
    return f"{share:.1f} %" if share >= 1 else f"{share:.2f} %" if share >= 0.01 else (
        f"{share:.1g} %" if share >= 1e-4 else "<0.0001 %")


def passage_text(found: Survey, text: Text) -> str:
    """Returns a passage as a person reads it, with where it is."""
    return (f"{safe(found.records.vocabulary.render(text.ids))} "
            f"({text.place.shard.name}, example {text.place.number:,})")


def safe(text: str) -> str:
    """Returns text that is safe to print, all of it; no-break spaces stay."""
    return _FIXED.join(one_line(part, longest=max(1, 10 * len(part)))
                       for part in text.split(_FIXED))


def _records(found: Survey) -> Table:
    manifest, records = found.records.manifest, found.records
    counts, vocabulary = manifest.counts, manifest.vocabulary
    tokens = counts.content_tokens + counts.special_tokens
    normalization = ", ".join(
        ("" if value else "not ") + name.replace("_", " ")
        for name, value in dataclasses.asdict(
            vocabulary.normalization).items())
    rows = [
        *((f"{SPLIT_NAMES[split].replace(' ', '-')} examples", f"{records.examples(split):,} in "
           f"{_plural(len(manifest.shards_of(split)), 'shard')}")
          for split in SPLIT_NAMES),
        ("tokens", f"{tokens:,}, of which {counts.special_tokens:,} are [CLS] and [SEP]"),
        ("tokens of an example", f"{manifest.max_seq_length} at most, packing {manifest.packing}; "
         f"{percent(counts.padding_positions, counts.examples * manifest.max_seq_length)} of all "
         "positions are padding"),
        ("examples of one segment",
         percent(counts.single_segment_examples, counts.examples)),
        ("vocabulary", f"{vocabulary.size:,} pieces, sha256 {vocabulary.sha256[:12]}..."),
        ("normalization", normalization),
        ("made of", f"{counts.documents:,} documents, {counts.lines:,} lines, {counts.words:,} "
         f"words, {counts.text_bytes / 1e6:,.1f} MB of text"),
        *_left_out(counts),
        *((f"  {one_line(source.name, longest=_LONGEST_NAME)}",
           f"{source.documents:,} documents, {source.text_bytes / 1e6:,.1f} MB")
          for source in manifest.sources),
        ("size", f"{sum(shard.bytes for shard in manifest.shards) / 1e6:,.1f} MB"),
        ("fingerprint", f"{manifest.fingerprint[:16]}..., equal for equal examples"),
        ("looked at", _looked_at(found)),
    ]
    return Table(title="Records", rows=tuple(rows))


def _left_out(counts) -> Iterator[tuple[str, str]]:
    if counts.dropped_text_bytes:
        yield "left out by cleaning", f"{counts.dropped_text_bytes / 1e6:,.1f} MB of text"
    if counts.skipped_documents:
        yield "skipped as damaged", _plural(counts.skipped_documents, "document")


def _looked_at(found: Survey) -> str:
    if found.complete:
        return "all examples"
    return " and ".join(
        f"{counts.examples:,} of {found.records.examples(split):,} {SPLIT_NAMES[split]}"
        for split, counts in found.splits.items()) + ": the first ones of every shard"


def _lengths(found: Survey) -> Table:
    length = found.records.manifest.max_seq_length
    edges = sorted({1, *(1 + length * step // _BINS for step in range(1, _BINS)), length})
    shares, rows = [], []
    for first, past in zip(edges, [*edges[1:], length + 1], strict=True):
        counts = [int(counts.lengths[first:past].sum()) for counts in found.splits.values()]
        wholes = [counts.examples for counts in found.splits.values()]
        name = f"{first}" if past == first + 1 else f"{first} to {past - 1}"
        rows.append((name, *(text for count, whole in zip(counts, wholes, strict=True)
                             for text in (f"{count:,}", percent(count, whole)))))
        shares.append(sum(counts) / max(1, sum(wholes)))
    top = max(shares)
    return Table(
        title="Lengths", heading=("tokens", "training", "", "held out", ""), rows=tuple(rows),
        bars=tuple(share / max(top, 1e-9) for share in shares),
        notes=("Tokens of an example, [CLS] and [SEP] among them.",))


def _words(found: Survey) -> Table:
    """Words and pieces by script, and what became [UNK]."""
    vocabulary, counts = found.records.vocabulary, found.records.manifest.counts
    text = found.pieces.copy()
    text[[vocabulary.ids[token] for token in SPECIAL_TOKENS]] = 0
    size = len(found.script_names)
    pieces = dict(zip(found.script_names, np.bincount(found.script, text, size), strict=True))
    words = dict(zip(found.script_names, np.bincount(
        found.script, np.where(vocabulary.continues, 0, text), size), strict=True))
    known = counts.unknown_by_script is not None
    unknown = dict(counts.unknown_by_script) if known else _beside_unknown(found)
    scale = 1.0
    if known and text.sum():  # Of all examples, while words are of those that are looked at.
        scale = (counts.content_tokens - counts.unknown_words) / int(text.sum())
    whole = sum(words.values())
    rows = [(name, f"{words.get(name, 0):,.0f}", percent(words.get(name, 0), whole),
             f"{pieces[name] / words[name]:.2f}" if words.get(name) else "-",
             f"{unknown.get(name, 0):,}",
             percent(unknown.get(name, 0), unknown.get(name, 0) + scale * words.get(name, 0)))
            for name in (*found.script_names, *sorted(unknown.keys() - words.keys()))
            if words.get(name) or unknown.get(name)]
    rows.append(("all", f"{whole:,.0f}", percent(whole, whole),
                 f"{sum(pieces.values()) / max(1, whole):.2f}", f"{sum(unknown.values()):,}",
                 percent(sum(unknown.values()), sum(unknown.values()) + scale * whole)))
    return Table(
        title="Words, and those that became [UNK], by script",
        heading=("script", "words", "share", "pieces a word", "[UNK]", "rate"),
        rows=tuple(rows), notes=(
            "A word's script is that of its first letter; signs are punctuation and symbols, a "
            "word each.",
            _UNKNOWN_COUNTED if known else _UNKNOWN_BESIDE))


def _beside_unknown(found: Survey) -> dict[str, int]:
    """Returns how many [UNK] stand beside words of each script."""
    beside = sum(counts.beside_unknown for counts in found.splits.values())
    return {name: int(count) for name, count in zip(
        (*found.script_names, _NOTHING_BESIDE), beside, strict=True) if count}


def _pieces(found: Survey) -> Table:
    vocabulary = found.records.vocabulary
    special = {vocabulary.ids[token] for token in SPECIAL_TOKENS}
    counts = found.pieces
    order = [index for index in np.argsort(-counts, kind="stable") if index not in special]
    ordinary = counts[order]
    total = int(ordinary.sum())
    used = [index for index in order if counts[index]]
    rows = [(f"there {name}", _plural(int(np.count_nonzero(
        (ordinary >= low) & (ordinary < high))), "piece")) for name, low, high in _FREQUENCIES]
    rows += [
        (f"the {min(_TOP, len(used))} most frequent", "  ".join(
            f"{safe(vocabulary.tokens[index])} {percent(counts[index], total)}".replace(
                " ", _FIXED) for index in used[:_TOP])),
        (f"the {min(_RARE, len(used))} rarest that are there", "  ".join(
            f"{safe(vocabulary.tokens[index])}{_FIXED}{counts[index]:,}"
            for index in used[::-1][:_RARE])),
        ("never there, for example", "  ".join(
            safe(vocabulary.tokens[index]) for index in order[::-1][:_RARE] if not counts[index])
            or "none")]
    return Table(title=f"Pieces: {len(order):,} besides the special tokens", rows=tuple(rows))


def _repeated(found: Survey) -> Table:
    repetition, counts = found.repetition, found.splits
    rows, passages, length = repetition.rows, repetition.passages, repetition.passage
    facts = [
        ("training examples that are copies", f"{_share(rows)}{_sampled(rows.one_in)}"),
        ("training passages that are copies", f"{_share(passages)}{_sampled(passages.one_in)}"),
        *((f"  {text.copies:,} times", passage_text(found, text))
          for text in repetition.most_frequent)]
    held_out = repetition.held_out
    if held_out is not None:
        seen, examples = held_out.seen_passages, len(held_out.ids)
        having = np.unique(held_out.row[seen]).size
        sample = "" if examples == counts["eval"].examples else " (evenly spaced)"
        facts += [
            ("held-out examples in training",
             f"{held_out.seen_rows.sum():,} of {examples:,}{sample} as a whole"),
            ("  with a passage that is there", f"{having:,} of {examples:,}, "
             f"{percent(having, examples)}"),
            ("held-out passages in training",
             f"{seen.sum():,} of {seen.size:,}, {percent(seen.sum(), seen.size)}"),
            *((f"  {_plural(text.copies, 'passage')}", passage_text(found, text))
              for text in repetition.leaked)]
    notes = [f"A passage is {length} tokens in a row within an example, [SEP] left out; they "
             "overlap."]
    if held_out is not None and not found.complete:
        notes.append("Held-out text is compared with the training examples that were looked at.")
    return Table(title="Repeated text", rows=tuple(facts), notes=tuple(notes))


def _share(sample) -> str:
    return f"{sample.copies:,} of {sample.total:,}, {percent(sample.copies, sample.total)}"


def _sampled(one_in: int) -> str:
    return f" (a sample: one in {one_in:,})" if one_in > 1 else ""


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)

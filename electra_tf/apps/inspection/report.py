"""Formats a survey and its examples as text of 100 columns and as a page."""

import pathlib
from collections.abc import Sequence

import numpy as np

from electra_tf.apps.inspection.examples import SPLIT_NAMES, MaskedExample, MaskedPiece
from electra_tf.apps.inspection.survey import Survey
from electra_tf.data.records import SPLITS
from electra_tf.platform.command_line import as_started
from electra_tf.platform.errors import one_line
from electra_tf.reporting import pages
from electra_tf.reporting.tables import FIXED, TextTable, percent, table_text, wrapped
from electra_tf.text import coverage
from electra_tf.text.coverage import scripts_of
from electra_tf.text.vocabulary import CONTINUATION, MASK, SPECIAL_TOKENS

NOT_RECORDED = "not recorded"
_BINS = 8
_TOP, _RARE = 40, 30
"""Numbers of frequent and of rare pieces that are shown."""
_FREQUENCIES = (("never", 0, 1), ("1 to 9 times", 1, 10), ("10 to 99 times", 10, 100),
                ("100 to 999 times", 100, 1000), ("1,000 times and more", 1000, np.inf))
_LONGEST_NAME = 60
"""Largest number of characters of a source's name."""
_MUCH = {"padding": 0.1, "copies": 0.05, "leaked": 0.01, "unused": 0.1}
"""Shares above which a remark is made."""
_TEMPLATE = pathlib.Path(__file__).with_name("page.html")
_LEGEND = """\
Examples, and what masking does to them
  «word»  selected: the generator reads [MASK] and predicts the word
  {word}  selected, but the generator reads the word itself
  (a→b)   selected, but the generator reads b, drawn at random"""


def text(found: Survey, examples: Sequence[MaskedExample]) -> str:
    """Returns tables, examples with their first draw of masks, and remarks."""
    parts = [*map(table_text, tables(found)), *([_LEGEND] if examples else ())]
    parts += [_example(example, number) for number, example in enumerate(examples, start=1)]
    lines = [line for remark in remarks(found)
             for line in wrapped(remark.split(), "  - ", "    ")]
    parts.append("\n".join(["What to look at", *lines]) if lines else "Nothing unusual.")
    return "\n\n".join(parts)


def page(found: Survey, examples: Sequence[MaskedExample], title: str) -> str:
    """Returns the same as a page with all draws; it needs no other file and no script."""
    draws = len(examples[0].pieces[0].read) if examples else 0
    return pages.render(
        _TEMPLATE, title=safe(title), remarks=remarks(found), examples=examples,
        found=tables(found), draws=range(1, draws + 1), shown=_shown,
        special=SPECIAL_TOKENS)


def tables(found: Survey) -> list[TextTable]:
    """Returns the tables of a survey: records, lengths, words and pieces."""
    return [_records(found), _lengths(found), _words(found), _pieces(found)]


def remarks(found: Survey) -> list[str]:
    """Returns unusual findings, each with its fix."""
    counts, manifest = found.records.manifest.counts, found.records.manifest
    lines = coverage.warnings(counts.tokenizer_words, counts.unknown_words)
    if not found.records.examples("train"):
        lines.append("There are no training examples: build with more text, or hold out less.")
    if not found.records.examples("eval"):
        lines.append("No examples are held out, so --mode=eval of run_pretraining.py cannot run: "
                     "set --held_out_fraction of data_prep.build_pretraining_data.")
    positions = counts.examples * manifest.max_seq_length
    if counts.padding_positions > _MUCH["padding"] * positions:
        lines.append(f"{percent(counts.padding_positions, positions)} of the positions are padding "
                     "and cost time: --packing=full of data_prep.build_pretraining_data leaves "
                     "none.")
    train, held_out = map(found.records.examples, SPLITS)
    if found.copies > _MUCH["copies"] * train:
        lines.append(f"{percent(found.copies, train)} of the training examples are copies: "
                     "--drop_near_duplicates and --drop_duplicate_lines of "
                     "data_prep.build_pretraining_data remove repeated text.")
    if found.leaked > _MUCH["leaked"] * held_out:
        lines.append(f"{percent(found.leaked, held_out)} of the held-out examples are also "
                     "training examples, so evaluation scores are too high: "
                     "--drop_near_duplicates of data_prep.build_pretraining_data removes copies of "
                     "documents.")
    unused = np.count_nonzero(found.pieces == 0)
    if unused > _MUCH["unused"] * found.pieces.size:
        lines.append(f"{percent(unused, found.pieces.size)} of the vocabulary never occurs, and "
                     "its embeddings are not trained: learn a vocabulary from this text with "
                     "`python -m data_prep.build_vocab`.")
    return [as_started(line) for line in lines]


def safe(text: str) -> str:
    """Returns text of the records without characters that disturb a terminal, at full length."""
    return one_line(text, longest=max(1, 10 * len(text)))


def _records(found: Survey) -> TextTable:
    manifest, records = found.records.manifest, found.records
    counts, vocabulary = manifest.counts, manifest.vocabulary
    rows = [(f"{name.replace(' ', '-')} examples", f"{records.examples(split):,} in "
             f"{_plural(len(manifest.shards_of(split)), 'shard')}")
            for split, name in SPLIT_NAMES.items()]
    rows += [
        ("copies", f"{found.copies:,} training examples are equal to an earlier one, "
         f"{found.leaked:,} held-out examples to a training example"),
        ("tokens", f"{counts.content_tokens + counts.special_tokens:,}, of which "
         f"{counts.special_tokens:,} are [CLS] and [SEP]"),
        ("tokens of an example", f"{manifest.max_seq_length} at most, packing {manifest.packing}; "
         f"{percent(counts.padding_positions, counts.examples * manifest.max_seq_length)} of all "
         "positions are padding"),
        ("examples of one segment", percent(counts.single_segment_examples, counts.examples)),
        ("vocabulary", f"{vocabulary.size:,} pieces, sha256 {vocabulary.sha256[:12]}..."),
        ("normalization", str(vocabulary.normalization)),
        ("made of", f"{counts.documents:,} documents, {counts.lines:,} lines, {counts.words:,} "
         f"words, {counts.text_bytes / 1e6:,.1f} MB of text")]
    if counts.dropped_text_bytes:
        rows.append(("left out by cleaning", f"{counts.dropped_text_bytes / 1e6:,.1f} MB of text"))
    if counts.skipped_documents:
        rows.append(("skipped as damaged", _plural(counts.skipped_documents, "document")))
    rows += [(f"  {one_line(source.name, longest=_LONGEST_NAME)}",
              f"{source.documents:,} documents, {source.text_bytes / 1e6:,.1f} MB")
             for source in manifest.sources]
    rows += [
        ("size", f"{sum(shard.bytes for shard in manifest.shards) / 1e6:,.1f} MB"),
        ("fingerprint", f"{manifest.fingerprint[:16]}..., equal for equal examples")]
    return TextTable(title="Records", rows=tuple(rows))


def _lengths(found: Survey) -> TextTable:
    length = found.records.manifest.max_seq_length
    edges = sorted({1, *(1 + length * step // _BINS for step in range(1, _BINS)), length})
    shares, rows = [], []
    for first, past in zip(edges, [*edges[1:], length + 1], strict=True):
        cells, inside = [], 0
        for counts in found.splits.values():
            count = int(counts.lengths[first:past].sum())
            cells += [f"{count:,}", percent(count, counts.hashes.size)]
            inside += count
        rows.append((f"{first}" if past == first + 1 else f"{first} to {past - 1}", *cells))
        shares.append(inside)
    return TextTable(
        title="Lengths", heading=("tokens", "training", "", "held out", ""), rows=tuple(rows),
        bars=tuple(share / max(1, *shares) for share in shares),
        notes=("Tokens of an example, [CLS] and [SEP] among them.",))


def _words(found: Survey) -> TextTable:
    """Returns words, pieces and [UNK] by script."""
    vocabulary, counts = found.records.vocabulary, found.records.manifest.counts
    special = [vocabulary.ids[token] for token in SPECIAL_TOKENS]
    text = found.pieces.copy()
    text[special] = 0
    names, script = np.unique(scripts_of(vocabulary.tokens), return_inverse=True)
    pieces = np.bincount(script, text, len(names))
    starts = np.bincount(script, np.where(vocabulary.continues, 0, text), len(names))
    unknown = counts.unknown_by_script or {NOT_RECORDED: counts.unknown_words}
    by_script = {str(names[index]): (starts[index], pieces[index])
                 for index in np.argsort(-pieces, kind="stable")}
    by_script |= {name: (0, 0) for name in sorted(unknown.keys() - by_script.keys())}
    whole = starts.sum()
    rows = [(name, f"{words:,.0f}", percent(words, whole),
             f"{of_them / words:.2f}" if words else "-", f"{lost:,}",
             percent(lost, lost + words))
            for name, (words, of_them), lost in (
                *((name, each, unknown.get(name, 0)) for name, each in by_script.items()),
                ("all", (whole, pieces.sum()), sum(unknown.values())))
            if words or lost or name == "all"]
    return TextTable(
        title="Words, and those that became [UNK], by script",
        heading=("script", "words", "share", "pieces a word", "[UNK]", "[UNK] share"),
        rows=tuple(rows), notes=(
            "A word's script is that of its first letter; signs are punctuation and symbols, a "
            "word each. [UNK]: counted when the records were built.",))


def _pieces(found: Survey) -> TextTable:
    vocabulary, counts = found.records.vocabulary, found.pieces
    special = {vocabulary.ids[token] for token in SPECIAL_TOKENS}
    order = [index for index in np.argsort(-counts, kind="stable") if index not in special]
    ordinary = counts[order]
    used = order[:np.count_nonzero(ordinary)]
    total = ordinary.sum()
    frequent = "  ".join(
        f"{safe(vocabulary.tokens[index])} {percent(counts[index], total)}".replace(" ", FIXED)
        for index in used[:_TOP])
    rare = "  ".join(f"{safe(vocabulary.tokens[index])}{FIXED}{counts[index]:,}"
                     for index in used[::-1][:_RARE])
    absent = "  ".join(safe(vocabulary.tokens[index])
                       for index in order[::-1][:_RARE] if not counts[index])
    rows = [(f"occurs {name}", _plural(
        int(np.count_nonzero((ordinary >= low) & (ordinary < high))), "piece"))
        for name, low, high in _FREQUENCIES]
    rows += [
        (f"the {min(_TOP, len(used))} most frequent", frequent),
        (f"the {min(_RARE, len(used))} rarest that occur", rare),
        ("never occurs, for example", absent or "none")]
    return TextTable(title=f"Pieces: {len(order):,} besides the special tokens", rows=tuple(rows))


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)


def _example(example: MaskedExample, number: int) -> str:
    selected = sum(piece.read[0] is not None for piece in example.pieces)
    lines = [f"{number}. {example.title}, {selected} selected"]
    for segment, name in enumerate("AB"):
        words = ["".join(map(_marked, word)) for word in example.words
                 if word[0].segment == segment]
        if words:
            lines += wrapped(words, f"  {name}  ", "     ")
    return "\n".join(lines)


def _marked(piece: MaskedPiece) -> str:
    token, read = _shown(piece.token), piece.read[0]
    if read is None:
        return token
    if read == MASK:
        return f"«{token}»"
    return f"{{{token}}}" if read == piece.token else f"({token}→{_shown(read)})"


def _shown(token: str) -> str:
    """Returns a token for a terminal, without the mark of continuation."""
    return safe(token.removeprefix(CONTINUATION) or token)

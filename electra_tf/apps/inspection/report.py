"""Formats a survey and its examples as text of 100 columns and as a page."""

import pathlib
from collections.abc import Sequence

import numpy as np

from electra_tf.apps.inspection.survey import SPLIT_NAMES, MaskedExample, MaskedPiece, Survey
from electra_tf.platform.command_line import as_started
from electra_tf.platform.errors import one_line
from electra_tf.reporting import pages
from electra_tf.reporting.tables import FIXED, TextTable, percent, table_text, wrapped
from electra_tf.text import coverage
from electra_tf.text.scripts import word_scripts
from electra_tf.text.vocabulary import CONTINUATION, MASK, SPECIAL_TOKENS

NOT_RECORDED = "not recorded"
_LENGTH_BINS = 8
_FREQUENT, _RARE = 40, 30  # Numbers of frequent and of rare pieces that are shown.
_FREQUENCIES = (("never", 0, 1), ("1 to 9 times", 1, 10), ("10 to 99 times", 10, 100),
                ("100 to 999 times", 100, 1000), ("1,000 times and more", 1000, np.inf))
_LEGEND = """\
Examples, and what masking does to them
  «word»  selected: the generator reads [MASK] and predicts the word
  {word}  selected, but the generator reads the word itself
  (a→b)   selected, but the generator reads b, drawn at random"""


def text(survey: Survey, examples: Sequence[MaskedExample]) -> str:
    """Returns tables, examples with their first draw of masks, and remarks."""
    parts = [*map(table_text, tables(survey)), *([_LEGEND] if examples else ())]
    for number, example in enumerate(examples, start=1):
        selected = sum(piece.read[0] is not None for piece in example.pieces)
        lines = [f"{number}. {example.title}, {selected} selected"]
        for segment, name in enumerate("AB"):
            words = ["".join(map(_marked, word)) for word in example.words
                     if word[0].segment == segment]
            if words:
                lines += wrapped(words, f"  {name}  ", "     ")
        parts.append("\n".join(lines))
    lines = [line for remark in remarks(survey)
             for line in wrapped(remark.split(), "  - ", "    ")]
    parts.append("\n".join(["What to look at", *lines]) if lines else "Nothing unusual.")
    return "\n\n".join(parts)


def page(survey: Survey, examples: Sequence[MaskedExample], title: str) -> str:
    """Returns the same as a page with all draws; it needs no other file and no script."""
    draws = len(examples[0].pieces[0].read) if examples else 0
    return pages.render(
        pathlib.Path(__file__).with_name("page.html"), title=safe(title), remarks=remarks(survey),
        examples=examples, data_tables=tables(survey), draws=range(1, draws + 1), shown=_shown,
        special=SPECIAL_TOKENS)


def tables(survey: Survey) -> list[TextTable]:
    """Returns the tables of a survey: records, lengths, words and pieces."""
    return [_records(survey), _lengths(survey), _words(survey), _pieces(survey)]


def remarks(survey: Survey) -> list[str]:
    """Returns unusual findings, each with its fix."""
    manifest, counts = survey.manifest, survey.manifest.counts
    train, held_out = map(manifest.examples, ("train", "eval"))
    positions = counts.examples * manifest.max_seq_length
    unused = np.count_nonzero(survey.pieces == 0)
    findings = (
        (not train, "There are no training examples: build with more text, or hold out less."),
        (not held_out, "No examples are held out, so --mode=eval of run_pretraining.py cannot run: "
         "set --held_out_fraction of data_prep.build_pretraining_data."),
        (counts.padding_positions > 0.1 * positions,
         f"{percent(counts.padding_positions, positions)} of the positions are padding and cost "
         "time: --packing=full of data_prep.build_pretraining_data leaves none."),
        (survey.copies > 0.05 * train,
         f"{percent(survey.copies, train)} of the training examples are copies: "
         "--drop_near_duplicates and --drop_duplicate_lines of data_prep.build_pretraining_data "
         "remove repeated text."),
        (survey.leaked > 0.01 * held_out,
         f"{percent(survey.leaked, held_out)} of the held-out examples are also training examples, "
         "so evaluation scores are too high: --drop_near_duplicates of "
         "data_prep.build_pretraining_data removes copies of documents."),
        (unused > 0.1 * survey.pieces.size,
         f"{percent(unused, survey.pieces.size)} of the vocabulary never occurs, and its "
         "embeddings are not trained: learn a vocabulary from this text with "
         "`python -m data_prep.build_vocab`."))
    lines = coverage.coverage_warnings(counts.tokenizer_words, counts.unknown_words)
    return [as_started(line) for line in
            [*lines, *(finding for applies, finding in findings if applies)]]


def safe(text: str) -> str:
    """Returns text of the records without characters that disturb a terminal, at full length."""
    return one_line(text, max_length=max(1, 10 * len(text)))


def _records(survey: Survey) -> TextTable:
    manifest = survey.manifest
    counts, vocabulary = manifest.counts, manifest.vocabulary
    positions = counts.examples * manifest.max_seq_length
    rows = [(f"{name.replace(' ', '-')} examples", f"{manifest.examples(split):,} in "
             f"{_plural(len(manifest.shards_of(split)), 'shard')}")
            for split, name in SPLIT_NAMES.items()]
    rows += [
        ("copies", f"{survey.copies:,} training examples equal an earlier example, "
         f"{survey.leaked:,} held-out examples equal a training example"),
        ("tokens", f"{counts.content_tokens + counts.special_tokens:,}, of which "
         f"{counts.special_tokens:,} are [CLS] and [SEP]"),
        ("tokens of an example", f"{manifest.max_seq_length} at most, packing {manifest.packing}; "
         f"{percent(counts.padding_positions, positions)} of all positions are padding"),
        ("examples of one segment", percent(counts.single_segment_examples, counts.examples)),
        ("vocabulary", f"{vocabulary.size:,} pieces, sha256 {vocabulary.sha256[:12]}..."),
        ("normalization", str(vocabulary.normalization)),
        ("made of", f"{counts.documents:,} documents, {counts.lines:,} lines, {counts.words:,} "
         f"words, {counts.text_bytes / 1e6:,.1f} MB of text")]
    if counts.dropped_text_bytes:
        rows.append(("left out by cleaning", f"{counts.dropped_text_bytes / 1e6:,.1f} MB of text"))
    if counts.skipped_documents:
        rows.append(("skipped as damaged", _plural(counts.skipped_documents, "document")))
    rows += [(f"  {one_line(source.name, max_length=60)}",
              f"{source.documents:,} documents, {source.text_bytes / 1e6:,.1f} MB")
             for source in manifest.sources]
    rows += [
        ("size", f"{sum(shard.bytes for shard in manifest.shards) / 1e6:,.1f} MB"),
        ("fingerprint", f"{manifest.fingerprint[:16]}..., equal for equal examples")]
    return TextTable(title="Records", rows=tuple(rows))


def _lengths(survey: Survey) -> TextTable:
    longest = survey.manifest.max_seq_length
    edges = sorted({1, longest, *(
        1 + longest * step // _LENGTH_BINS for step in range(1, _LENGTH_BINS))})
    rows, totals = [], []
    for first, end in zip(edges, [*edges[1:], longest + 1], strict=True):
        counts = [int(split.lengths[first:end].sum()) for split in survey.splits.values()]
        totals.append(sum(counts))
        rows.append((f"{first}" if end == first + 1 else f"{first} to {end - 1}", *(
            cell for count, split in zip(counts, survey.splits.values(), strict=True)
            for cell in (f"{count:,}", percent(count, split.hashes.size)))))
    return TextTable(
        title="Lengths", heading=("tokens", "training", "", "held out", ""), rows=tuple(rows),
        bars=tuple(total / max(1, *totals) for total in totals),
        notes=("Tokens of an example, [CLS] and [SEP] among them.",))


def _words(survey: Survey) -> TextTable:
    """Returns words, pieces and [UNK] by script."""
    vocabulary, counts = survey.vocabulary, survey.manifest.counts
    frequencies = survey.pieces.copy()
    frequencies[[vocabulary.ids[token] for token in SPECIAL_TOKENS]] = 0
    names, script = np.unique(word_scripts(vocabulary.tokens), return_inverse=True)
    pieces = np.bincount(script, frequencies, len(names))
    words = np.bincount(script, np.where(vocabulary.continues, 0, frequencies), len(names))
    unknown = counts.unknown_by_script or {NOT_RECORDED: counts.unknown_words}
    scripts = {str(names[index]): (words[index], pieces[index])
               for index in np.argsort(-pieces, kind="stable")}
    scripts |= {name: (0, 0) for name in sorted(unknown.keys() - scripts.keys())}
    by_script = [(name, *sizes, unknown.get(name, 0)) for name, sizes in scripts.items()]
    total = ("all", words.sum(), pieces.sum(), sum(unknown.values()))
    return TextTable(
        title="Words, and those that became [UNK], by script",
        heading=("script", "words", "share", "pieces a word", "[UNK]", "[UNK] share"),
        rows=tuple((name, f"{num_words:,.0f}", percent(num_words, words.sum()),
                    f"{num_pieces / num_words:.2f}" if num_words else "-", f"{num_unknown:,}",
                    percent(num_unknown, num_unknown + num_words))
                   for name, num_words, num_pieces, num_unknown in [*by_script, total]
                   if num_words or num_unknown or name == "all"),
        notes=("The first letter of a word decides its script. Signs are punctuation and symbols, "
               "one word each. [UNK] was counted when the records were built.",))


def _pieces(survey: Survey) -> TextTable:
    tokens, counts = survey.vocabulary.tokens, survey.pieces
    order = [index for index in np.argsort(-counts, kind="stable")
             if tokens[index] not in SPECIAL_TOKENS]
    used = order[:np.count_nonzero(counts[order])]
    frequent = "  ".join(
        f"{safe(tokens[index])} {percent(counts[index], counts[order].sum())}".replace(" ", FIXED)
        for index in used[:_FREQUENT])
    rare = "  ".join(f"{safe(tokens[index])}{FIXED}{counts[index]:,}"
                     for index in used[::-1][:_RARE])
    absent = "  ".join(safe(tokens[index]) for index in order[::-1][:_RARE] if not counts[index])
    rows = [(f"occurs {name}", _plural(
        int(np.count_nonzero((counts[order] >= low) & (counts[order] < high))), "piece"))
        for name, low, high in _FREQUENCIES]
    rows += [
        (f"the {min(_FREQUENT, len(used))} most frequent", frequent),
        (f"the {min(_RARE, len(used))} rarest that occur", rare),
        ("never occurs, for example", absent or "none")]
    return TextTable(title=f"Pieces: {len(order):,} besides the special tokens", rows=tuple(rows))


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)


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

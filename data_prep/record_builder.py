"""Builds a directory of records: text in; shards, vocab.txt and manifest.json out."""

import functools
from collections.abc import Callable, Iterable, Sequence

from data_prep.cleaning import plan, report
from data_prep.cleaning.benchmark_texts import BenchmarkTexts
from data_prep.held_out import held_out_of
from data_prep.progress import ByteProgress
from data_prep.reading_notes import ReadingNotes
from data_prep.record_directory import Outcome, RecordDirectory
from data_prep.settings import BuildSettings
from data_prep.sources.several import Member, members_of
from data_prep.sources.source import Source
from data_prep.work_units import Piece, Runner, WorkUnit, corpus_sha256, pieces_of, read_bytes
from electra_tf.data import manifest
from electra_tf.platform import atomic_file, errors, process_lock
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text import coverage
from electra_tf.text.tokenization import TextSettings

_LONGEST_NAME = 60
"""Characters of a source in the summary."""


def build_records(
    source: Source, text: TextSettings, settings: BuildSettings, output_dir: Path, runner: Runner,
    *, overwrite: bool = False,
) -> manifest.Manifest | None:
    """Builds all records, or what an earlier interrupted call with equal arguments left undone.

    Args:
        source: the text.
        text: how text becomes token ids; the vocabulary is copied to `output_dir`/vocab.txt.
        settings: what decides the examples.
        output_dir: made if need be; holds one build.
        runner: does the work; the bytes don't depend on it.
        overwrite: remove another build from `output_dir` first.

    Returns:
        The manifest, or None if `output_dir` already held this very build, finished.

    Raises:
        UserError: see `Source`, `RecordDirectory.claim` and `write_shard`; there is no text; the
            directory of --decontaminate is none; or another process builds there.
    """
    texts = plan.benchmark_texts(settings.cleaning)
    atomic_file.make_directory(output_dir)
    with process_lock.only_process(
            output_dir, f"another process is building in --output_dir={output_dir}; wait for it "
            "or name another directory."):
        pieces = pieces_of(source)
        identity = settings.identity(text.normalization) | plan.identity(texts) | {
            "vocabulary_sha256": text.vocabulary.sha256,
            "corpus_sha256": corpus_sha256(pieces, runner)}
        return _build(source, pieces, text, settings, texts, identity,
                      RecordDirectory(output_dir), runner, overwrite=overwrite)


def _build(source: Source, pieces: Sequence[Piece], text: TextSettings,
           settings: BuildSettings, texts: BenchmarkTexts | None, identity: dict,
           directory: RecordDirectory, runner: Runner, *, overwrite: bool,
           ) -> manifest.Manifest | None:
    if directory.claim(identity, overwrite):
        return None
    text.save(directory.path / manifest.VOCABULARY_NAME)
    cut = functools.partial(
        Piece.units, unit_bytes=settings.shard_text_bytes,
        held_out=held_out_of(source.documents(), settings.held_out_fraction))
    try:
        cleaning = plan.prepare(
            settings.cleaning, texts, directory.path, identity, pieces, cut, runner,
            _survey_progress(source, pieces))
        work = functools.partial(
            _finish_unit, directory, text, settings, cleaning, identity)
        outcomes = _collect(source, pieces, cut, settings, work, runner)
    finally:
        atomic_file.remove_unfinished(directory.path)
    result = _manifest(text, settings, identity, outcomes, members_of(source))
    directory.finish(result)
    return result


def _survey_progress(source: Source, pieces: Sequence[Piece]) -> Callable[[int], None]:
    progress = ByteProgress(source.size)
    return lambda documents: progress.update(
        read_bytes(pieces), {"documents surveyed": documents})


def _collect(source: Source, pieces: Sequence[Piece],
             cut: Callable[[Piece], Iterable[WorkUnit]], settings: BuildSettings, work,
             runner: Runner) -> list[Outcome]:
    progress = ByteProgress(source.size)
    outcomes: list[Outcome] = []
    total = manifest.Counts()
    read = 0
    try:
        for outcome in runner.run(pieces, cut, work, Outcome):
            outcomes.append(outcome)
            total += outcome[1]
            read = read_bytes(pieces)
            progress.update(read, {
                "bytes": total.text_bytes, "tokens": total.content_tokens,
                "examples": total.examples})
    except atomic_file.DiskFull as error:
        raise UserError(f"{error}{_still_to_come(outcomes, source.size, read)}") from error
    if not total.content_tokens and total.dropped_text_bytes:
        raise UserError("cleaning leaves nothing of the text of --input; use fewer of its measures "
                        f"({', '.join(settings.cleaning.measures())}).")
    if not total.content_tokens and total.skipped_documents:
        raise UserError(f"--input holds no text besides {total.skipped_documents} damaged "
                        "documents; --on_error=stop says what is wrong with the first.")
    if not total.content_tokens:
        raise UserError("--input holds no text: every line is blank; give files with text.")
    return sorted(outcomes, key=lambda outcome: (outcome[0].split != "train", outcome[0].name))


def _still_to_come(outcomes: list[Outcome], size: int, read: int) -> str:
    """Returns about how many bytes a build has still to write, in words; "" if nobody knows."""
    written = sum(shard.bytes for shard, *_ in outcomes)
    if not written or not read:
        return ""
    return (f" About {written * (size - read) / read / 1e6:,.1f} MB of shards are still to be "
            f"written, after {written / 1e6:,.1f} MB; the same command goes on from there.")


def _finish_unit(directory: RecordDirectory, text: TextSettings, settings: BuildSettings,
                 cleaning: plan.CleaningPlan, identity: dict, unit: WorkUnit) -> Outcome:
    def build(unit: WorkUnit) -> Outcome:
        # Here, because only the processes that tokenize need TensorFlow's 400 MB.
        from data_prep import pipeline
        return pipeline.build_shard(unit, directory.path, text, settings, cleaning)

    return directory.build_or_reuse(unit, build, identity)


def _manifest(text: TextSettings, settings: BuildSettings, identity: dict,
              outcomes: list[Outcome], members: tuple[Member, ...]) -> manifest.Manifest:
    notes = sum((notes for *_, notes in outcomes), ReadingNotes())
    return manifest.Manifest(
        format_version=manifest.FORMAT_VERSION, max_seq_length=settings.max_seq_length,
        packing=settings.packing, token_bytes=manifest.token_bytes_for(text.vocabulary.size),
        vocabulary=text.tokenization,
        settings=identity, counts=sum((counts for _, counts, _ in outcomes), manifest.Counts()),
        shards=tuple(shard for shard, *_ in outcomes), skipped=tuple(notes.messages),
        sources=tuple(manifest.SourceCounts(
            name=errors.one_line(member.name), share=member.share,
            documents=notes.documents.get(str(member.number), 0),
            text_bytes=notes.text_bytes.get(str(member.number), 0)) for member in members))


def summary(result: manifest.Manifest, seconds: float) -> str:
    """Returns the table that ends a build, for a reader who sees it for the first time."""
    counts = result.counts
    cleaned = report.rows(result)
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
           f"{len(result.shards_of(split))}") for split in manifest.SPLITS),
        ("positions per example", f"{result.max_seq_length}"),
        ("  of which padding",
         _percent(counts.padding_positions, counts.examples * result.max_seq_length)),
        ("examples of one segment", _percent(counts.single_segment_examples, counts.examples)),
        ("size of the shards", f"{sum(s.bytes for s in result.shards) / 1e6:,.1f} MB"),
        ("time", f"{seconds:.1f} s ({counts.content_tokens / seconds:,.0f} tokens/s)"),
    ]
    return "\n".join(f"{name:<29} {value}" for name, value in rows)


def _text_rows(result: manifest.Manifest, cleaned: list[tuple[str, str]]
               ) -> list[tuple[str, str]]:
    """Returns how much text there was, from which source, and what cleaning left of it."""
    read = result.counts.text_bytes + result.counts.dropped_text_bytes
    rows = [("text read", f"{read / 1e6:,.1f} MB"), *_source_rows(result)]
    if not cleaned:
        return rows
    left = [("text left", f"{result.counts.text_bytes / 1e6:,.1f} MB"), *cleaned]
    return [*rows, *left] if result.sources else left


def _source_rows(result: manifest.Manifest) -> list[tuple[str, str]]:
    """Returns how much of the text came from each of several sources, and what was asked for."""
    whole = sum(source.text_bytes for source in result.sources)
    rows = []
    for source in result.sources:
        asked = f", {_percent(source.share, 1)} asked for" if source.share else ""
        rows.append((f"  of which {errors.one_line(source.name, longest=_LONGEST_NAME)}",
                     f"{_percent(source.text_bytes, whole)}{asked}, "
                     f"{source.text_bytes / 1e6:,.1f} MB, {source.documents:,} documents"))
    return rows


def held_out_note(result: manifest.Manifest) -> str:
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


def text_warnings(result: manifest.Manifest) -> list[str]:
    """Returns what is wrong between the text and the way it was tokenized."""
    counts = result.counts
    found = [coverage.unknown_warning(counts.unknown_words, counts.tokenizer_words)]
    if result.vocabulary.normalization.strip_accents:
        found.append(coverage.changed_warning(counts.changed_characters, counts.characters))
    return list(filter(None, found))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.2f} %"

"""Builds a directory of records: text in; shards, vocab.txt and manifest.json out."""

import functools
from collections.abc import Callable, Iterable, Sequence

from data_prep.cleaning import plan
from data_prep.documents import ReadingNotes
from data_prep.progress import ByteProgress
from data_prep.record_directory import Outcome, RecordDirectory
from data_prep.settings import BuildSettings
from data_prep.sources.several import Member, members_of
from data_prep.sources.source import Source
from data_prep.work_units import (
    Piece,
    Runner,
    WorkUnit,
    corpus_sha256,
    held_out_of,
    pieces_of,
    read_bytes,
)
from electra_tf.data import manifest
from electra_tf.platform import atomic_file, errors
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.text.tokenization import TextSettings


def build_records(
    source: Source, text: TextSettings, settings: BuildSettings, output_dir: Path, runner: Runner,
    *, overwrite: bool = False,
) -> manifest.Manifest | None:
    """Builds all records, or what an interrupted call with equal arguments left undone.

    Returns:
        The manifest, or None if `output_dir` already holds this build, finished.

    Raises:
        UserError: see `Source`, `RecordDirectory.claim` and `write_shard`; there is no text; the
            directory of --decontaminate does not exist; or another process builds there.
    """
    texts = plan.benchmark_texts(settings.cleaning)
    atomic_file.make_directory(output_dir)
    with atomic_file.only_process(
            output_dir, f"another process is building in --output_dir={output_dir}; wait for it "
            "or name another directory."):
        pieces = pieces_of(source)
        identity = settings.identity(text.normalization) | plan.identity(texts) | {
            "vocabulary_sha256": text.vocabulary.sha256,
            "corpus_sha256": corpus_sha256(pieces, runner)}
        if revisions := source.revisions():
            identity["hub_revisions"] = ",".join(revisions)
        directory = RecordDirectory(output_dir)
        if directory.claim(identity, overwrite):
            return None
        text.save(output_dir / manifest.VOCABULARY_NAME)
        cut = functools.partial(
            Piece.units, unit_bytes=settings.shard_text_bytes,
            held_out=held_out_of(source.documents(), settings.held_out_fraction))
        try:
            cleaning = plan.prepare(
                settings.cleaning, texts, output_dir, identity, pieces, cut, runner,
                _survey_progress(source, pieces))
            work = functools.partial(_finish_unit, directory, text, settings, cleaning, identity)
            outcomes = _collect(source, pieces, cut, settings, work, runner)
        finally:
            atomic_file.remove_unfinished(output_dir)
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
    for outcome in runner.run(pieces, cut, work, Outcome):
        outcomes.append(outcome)
        total += outcome[1]
        progress.update(read_bytes(pieces), {
            "bytes": total.text_bytes, "tokens": total.content_tokens, "examples": total.examples})
    if not total.content_tokens and total.dropped_text_bytes:
        raise UserError("cleaning leaves nothing of the text of --input; use fewer of its measures "
                        f"({', '.join(settings.cleaning.measures())}).")
    if not total.content_tokens and total.skipped_documents:
        raise UserError(f"--input holds no text besides {total.skipped_documents} damaged "
                        "documents; --on_error=stop says what is wrong with the first.")
    if not total.content_tokens:
        raise UserError("--input holds no text: every line is blank; give files with text.")
    return sorted(outcomes, key=lambda outcome: (outcome[0].split != "train", outcome[0].name))


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

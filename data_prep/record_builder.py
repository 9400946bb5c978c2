"""Builds a directory of records from text: shards, vocab.txt and manifest.json."""

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from data_prep import work_units
from data_prep.cleaning import benchmarks, plan
from data_prep.documents import ReadingNotes
from data_prep.settings import BuildSettings
from data_prep.sources.source import ConcatenatedSource, Source
from data_prep.work_units import CorpusPart, Progress, Runner, WorkUnit
from electra_tf.core import atomic_file, errors, storage, strict_json
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import MIB, Path
from electra_tf.data import manifest
from electra_tf.text.normalization import TextSettings
from electra_tf.text.vocabulary import VOCABULARY_FILE

_STATE_NAME = "unfinished_build.json"
_SHARDS = "*.tfrecord"
_RECEIPTS = ".finished-*.json"
_MAX_BYTES = MIB  # Limit for reading a receipt or the state; each has about 1 KB.

ShardResult = tuple[manifest.Shard, manifest.Counts, ReadingNotes]
"""Shard, counts and notes of a unit of work, which `pipeline.build_shard` returns."""
Identity = Mapping[str, Any]
"""Name -> value of all settings and inputs that determine the bytes of a build."""


def build_records(
    source: Source, text: TextSettings, settings: BuildSettings, output_dir: Path, runner: Runner,
    *, overwrite: bool = False,
) -> manifest.Manifest | None:
    """Builds all records, or those that an interrupted call with equal arguments lacks.

    Returns the manifest, or None if `output_dir` already holds this build, finished. Raises
    `UserError` for an unreadable or empty text, and for a directory that cannot be written, is in
    use or holds another build.
    """
    texts = None
    if settings.cleaning.decontaminate:
        texts = benchmarks.read(storage.path(settings.cleaning.decontaminate),
                                settings.cleaning.decontaminate_words)
    atomic_file.make_directory(output_dir)
    with atomic_file.lock_directory(
            output_dir, f"another process is building in --output_dir={output_dir}; wait for it "
            "or name another directory."):
        # Identify the build by its settings and by digests of its inputs.
        parts = work_units.split_corpus(source)
        digests = [digest for _, digest in sorted(runner.run(
            parts, lambda part: [part], CorpusPart.digest, tuple[int, str]))]
        identity = settings.identity(text.normalization) | (texts.to_dict() if texts else {}) | {
            "vocabulary_sha256": text.vocabulary.sha256,
            "corpus_sha256": digests[0] if len(digests) == 1 else
            hashlib.sha256("".join(digests).encode()).hexdigest()}
        if source.revisions:
            identity["hub_revisions"] = ",".join(source.revisions)
        if open_directory(output_dir, identity, overwrite):
            return None
        # Hold out documents by their hashes, plan the cleaning, and build one shard per unit.
        text.save(output_dir / VOCABULARY_FILE)
        cut = functools.partial(
            CorpusPart.units, unit_bytes=settings.shard_text_bytes,
            held_out=work_units.held_out_keys(source.documents(), settings.held_out_fraction))
        try:
            cleaning = plan.prepare(settings.cleaning, texts, output_dir, parts, cut, runner,
                                    Progress(source, parts))
            results: list[ShardResult] = []
            total, progress = manifest.Counts(), Progress(source, parts)
            work = functools.partial(_finish_unit, output_dir, text, settings, cleaning, identity)
            for result in runner.run(parts, cut, work, ShardResult):
                results.append(result)
                total += result[1]
                progress.update({"bytes": total.text_bytes, "tokens": total.content_tokens,
                                 "examples": total.examples})
        finally:
            atomic_file.remove_unfinished(output_dir)
        if not total.content_tokens:
            raise UserError(
                f"--input holds no text: {total.skipped_documents} documents are damaged "
                f"(--on_error=stop describes the first), cleaning drops {total.dropped_text_bytes} "
                "bytes, and every other line is blank; give files with text.")
        # Write the manifest, which makes the build complete.
        records = _manifest(text, settings, identity, results, source)
        records.save(output_dir)
        _remove(output_dir, _STATE_NAME, _RECEIPTS, plan.FILES)
        return records


def _finish_unit(directory: Path, text: TextSettings, settings: BuildSettings,
                 cleaning: plan.CleaningPlan, identity: Identity, unit: WorkUnit) -> ShardResult:
    # Only the processes that tokenize need TensorFlow, which takes 400 MB.
    from data_prep import pipeline

    return build_or_reuse(directory, unit, functools.partial(
        pipeline.build_shard, directory=directory, text=text, settings=settings,
        cleaning=cleaning), identity)


def _manifest(text: TextSettings, settings: BuildSettings, identity: Identity,
              results: list[ShardResult], source: Source) -> manifest.Manifest:
    # Shards in the order of their names, training first, whatever order they were built in.
    results = sorted(results, key=lambda result: (result[0].split != "train", result[0].name))
    notes = sum((notes for *_, notes in results), ReadingNotes())
    members = source.members if isinstance(source, ConcatenatedSource) else ()
    return manifest.Manifest(
        format_version=manifest.FORMAT_VERSION, max_seq_length=settings.max_seq_length,
        packing=settings.packing, token_bytes=manifest.token_bytes_for(text.vocabulary.size),
        vocabulary=text.tokenization, settings=identity,
        counts=sum((counts for _, counts, _ in results), manifest.Counts()),
        shards=tuple(shard for shard, *_ in results), skipped=tuple(notes.messages),
        sources=tuple(manifest.SourceCounts(
            name=errors.one_line(member.name), share=member.share,
            documents=notes.documents.get(str(member.number), 0),
            text_bytes=notes.text_bytes.get(str(member.number), 0)) for member in members))


class _Receipt(strict_json.Object):
    """The content of a finished shard's receipt."""

    key: str  # A digest of the other fields and of the build's identity with that of its text.
    shard: manifest.Shard
    counts: manifest.Counts
    notes: ReadingNotes


def open_directory(directory: Path, identity: Identity, overwrite: bool) -> bool:
    """Prepares a directory for a build; returns True if it holds this build, finished.

    Until the manifest is written, `unfinished_build.json` holds the build's identity, and each
    finished shard has a receipt. Raises `UserError` for another build or damaged files.
    """
    if overwrite:
        # The manifest goes first, because it is invalid without one of its shards.
        (directory / manifest.MANIFEST_NAME).unlink(missing_ok=True)
        _remove(directory, _SHARDS, _RECEIPTS, plan.FILES, _STATE_NAME)
    if (directory / manifest.MANIFEST_NAME).exists():
        finished = manifest.load(directory)
        _refuse_other(directory, finished.settings, identity)
        manifest.verify_shards(directory, finished, checksums=False)
        return True
    # An unfinished build continues if it is the same one.
    if (existing := _unfinished_identity(directory)) is not None:
        _refuse_other(directory, existing, identity)
    elif any(directory.glob(_SHARDS)):
        raise UserError(f"{directory} holds shards of an unknown build; use another --output_dir, "
                        "or --overwrite to remove them.")
    else:
        _remove(directory, plan.FILES)  # They belong to an unknown build.
    atomic_file.write_json(directory / _STATE_NAME, identity)
    atomic_file.remove_unfinished(directory)
    return False


def build_or_reuse(directory: Path, unit: WorkUnit, build: Callable[[WorkUnit], ShardResult],
                   identity: Identity) -> ShardResult:
    """Returns the result of `build` for the unit, or the stored one of a finished shard.

    Raises `UserError` if another build has the directory: a cluster's worker can still run when its
    build has ended.
    """
    if _unfinished_identity(directory) != identity:
        raise UserError(f"{directory} was taken over by another build, or finished by another "
                        "process.")
    # A receipt counts if it is whole and of this build, and its shard has the checksum.
    path = directory / f".finished-{unit.name}.json"
    if path.exists():
        receipt = strict_json.read(path, _Receipt, max_bytes=_MAX_BYTES,
                                   fix="remove it, and its shard is built again.")
        result = receipt.shard, receipt.counts, receipt.notes
        with contextlib.suppress(FileNotFoundError):
            if receipt.key == _receipt_key(identity, result) and (
                    manifest.file_sha256(directory / receipt.shard.name) == receipt.shard.sha256):
                return result
    # The shard before its receipt, so that a receipt never names an unfinished shard.
    shard, counts, notes = result = build(unit)
    receipt = _Receipt(key=_receipt_key(identity, result), shard=shard, counts=counts, notes=notes)
    atomic_file.write_atomically(path, strict_json.dumps(receipt, _Receipt))
    return result


def _receipt_key(identity: Identity, result: ShardResult) -> str:
    content = json.dumps(identity).encode() + strict_json.dumps(result, ShardResult)
    return hashlib.sha256(content).hexdigest()


def _unfinished_identity(directory: Path) -> Identity | None:
    """Returns the identity of the unfinished build; None if there is none."""
    path = directory / _STATE_NAME
    if not path.exists():
        return None
    return strict_json.read(
        path, dict[str, str | int | float | bool], max_bytes=_MAX_BYTES,
        fix="use --overwrite to build from the start.")


def _refuse_other(directory: Path, existing: Identity, identity: Identity) -> None:
    different = [f"{name} ({shown(existing.get(name))} there, {shown(identity.get(name))} now)"
                 for name in {**identity, **existing} if existing.get(name) != identity.get(name)]
    if different:
        raise UserError(f"{directory} holds another build: {', '.join(different)}; use another "
                        "--output_dir, or --overwrite to replace it.")


def _remove(directory: Path, *patterns: str) -> None:
    for pattern in patterns:
        for path in directory.glob(pattern):
            path.unlink()

"""Prepares the cleaning of a build, and cleans the units of work.

Repeated lines and near-duplicate documents need a pass over the whole text: workers write a survey
of each unit to a file, `decide` compares the surveys, and a worker reads the decisions of its unit.
Lines are compared by 64-bit hashes: two of 10^8 different lines collide with a probability of
0.03 %.
"""

import collections
import dataclasses
import functools
import io
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.cleaning import ngrams
from data_prep.cleaning.benchmarks import BenchmarkTexts
from data_prep.documents import DOCUMENT_END, ReadingNotes, batches, lines_of
from data_prep.settings import CleaningSettings
from data_prep.work_units import CorpusPart, Progress, Runner, WorkUnit
from electra_tf.core import atomic_file
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path, read_error

FILES = ".cleaning-*"  # Pattern of the plan's files in a build's directory.
_DECISIONS, _SURVEY = ".cleaning-decisions", ".cleaning-survey-"
_BATCH_CHARACTERS = 1 << 18  # Characters that are searched for test texts together.
_NO_HASH = 0  # In place of the hash of a line that is not compared.


@dataclasses.dataclass(frozen=True)
class CleaningPlan:
    """The cleaning of the units of one build, small when pickled."""

    settings: CleaningSettings = CleaningSettings()
    directory: Path | None = None  # Directory of the build, which contains the plan's files.
    texts: BenchmarkTexts | None = None  # The texts of --decontaminate.

    def clean(self, unit: WorkUnit, tally: collections.Counter[str],
              notes: ReadingNotes | None = None) -> Iterator[str]:
        """Yields the lines of the unit that are kept, and every `DOCUMENT_END`.

        `tally` counts dropped lines and documents by the names of `manifest.Counts`; `notes` counts
        what is read. Raises `UserError` for a damaged text, or if the plan's files are damaged.
        """
        def drop(reason: str, line: str) -> None:
            tally[reason] += 1
            tally["dropped_text_bytes"] += len(line.encode(errors="surrogatepass"))

        # Lines by the rules and the survey, then without those that contain test texts.
        lines = self._without_duplicates(
            unit, lines_of(unit.parts, unit.parse, notes), tally, drop)
        if self.texts is None:
            yield from lines
            return
        for batch in batches(lines, _BATCH_CHARACTERS):
            contaminated = self.texts.contaminated(batch).tolist()
            for line, is_contaminated in zip(batch, contaminated, strict=True):
                if is_contaminated:
                    drop("contaminated_lines", line)
                else:
                    yield line

    def _without_duplicates(self, unit: WorkUnit, lines: Iterable[str],
                            tally: collections.Counter[str], drop: Callable[[str, str], None]
                            ) -> Iterator[str]:
        """Yields the lines that line rules and the survey keep."""
        dropped_documents: set[int] = set()
        dropped_lines: set[int] = set()
        if self.settings.needs_survey:
            decisions = read_arrays(
                self.directory / _DECISIONS, f"{unit.name}/documents", f"{unit.name}/lines")
            dropped_documents, dropped_lines = (
                set(numbers.tolist()) for numbers in decisions.values())
            # A document that began in an earlier unit is counted there.
            continued = not unit.parts[0].begins and 0 in dropped_documents
            tally["near_duplicate_documents"] += len(dropped_documents) - continued
        # Numbers of documents and lines count from 0 in the unit, as in its survey.
        document = number = 0
        for raw in lines:
            if raw == DOCUMENT_END:
                document += 1
                yield raw
                continue
            line = normalized(raw, self.settings)
            if document in dropped_documents:
                drop("lines_of_dropped_documents", line)
            elif reason := reason_to_drop(line, self.settings):
                drop(reason, line)
            elif number in dropped_lines:
                drop("duplicate_lines", line)
            else:
                yield line
            number += 1


def normalized(line: str, settings: CleaningSettings) -> str:
    """Returns a line in the Unicode form of the settings, stripped."""
    if settings.unicode == "none" or line.isascii():
        return line
    return unicodedata.normalize(settings.unicode.upper(), line).strip()


def reason_to_drop(line: str, settings: CleaningSettings) -> str:
    """Returns the reason to drop a normalized line, a name of `manifest.Counts`, or ""."""
    if settings.drop_letterless_lines and not any(map(str.isalpha, line)):
        return "letterless_lines"
    if len(line) < settings.min_line_characters or 0 < settings.max_line_characters < len(line):
        return "short_or_long_lines"
    return ""


def prepare(
    settings: CleaningSettings, texts: BenchmarkTexts | None, directory: Path,
    parts: Sequence[CorpusPart], cut: Callable[[CorpusPart], Iterable[WorkUnit]], runner: Runner,
    progress: Progress,
) -> CleaningPlan:
    """Surveys the text if necessary, and writes the decisions that workers read.

    Uses the decisions that an interrupted call wrote to the build's `directory`. Raises `UserError`
    for a damaged text.
    """
    plan = CleaningPlan(settings, directory, texts)
    path = directory / _DECISIONS
    if not settings.needs_survey or path.exists():
        return plan
    # Survey all units, in any order.
    names: list[str] = []
    total = 0
    work = functools.partial(survey_unit, settings, directory)
    for name, documents in runner.run(parts, cut, work, tuple[str, int]):
        names.append(name)
        total += documents
        progress.update({"documents surveyed": total})
    # Compare them in the text's order, training documents first.
    names.sort(key=lambda name: (not name.startswith("train"), *map(int, name.split("-")[1:])))
    surveys = {name: read_arrays(directory / f"{_SURVEY}{name}") for name in names}
    save_arrays(path, decide(surveys, settings))
    for name in names:
        (directory / f"{_SURVEY}{name}").unlink()
    return plan


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, atomically."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    atomic_file.write_atomically(path, content.getvalue())


def read_arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Returns some or all arrays of a file by name; `UserError` if it is damaged or incomplete."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names or arrays}
    except OSError as error:
        raise read_error(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile,
            zlib.error) as error:
        raise UserError(f"{path} is damaged; remove it and give the same command, "
                        "without --overwrite.") from error


def survey_unit(settings: CleaningSettings, directory: Path, unit: WorkUnit) -> tuple[str, int]:
    """Writes the survey of a unit to a file; `UserError` for a damaged text.

    The survey of a unit of D documents, of which B begin in the unit, and N lines has the arrays
    `document_lines`, int64 [D], `line_hashes`, uint64 [N], and `signatures` of MinHash of the
    first parts of the B documents, uint32 [B, P]. P is 0 without `drop_near_duplicates`.

    Returns the unit's name and number of documents that begin in it.
    """
    document_lines: list[int] = []
    line_hashes: list[int] = []
    signatures: list[Sequence[int]] = []
    permutations = settings.near_duplicate_permutations if settings.drop_near_duplicates else 0
    for part in unit.parts:
        lines = [normalized(line, settings)
                 for line in lines_of([part], unit.parse) if line != DOCUMENT_END]
        kept = [not reason_to_drop(line, settings) for line in lines]
        # Hash the lines that can be duplicates.
        line_hashes += [
            ngrams.text_hash(line) if settings.drop_duplicate_lines and is_kept
            and len(line) >= settings.min_duplicate_characters else _NO_HASH
            for line, is_kept in zip(lines, kept, strict=True)]
        # A document's part continues the one before, or begins another one.
        if part.begins or not document_lines:
            document_lines.append(0)
        document_lines[-1] += len(lines)
        if part.begins:
            # The first part stands for the whole document: 1 MiB is most of them.
            text = "\n".join(line for line, is_kept in zip(lines, kept, strict=True) if is_kept)
            signatures.append(ngrams.signature(text, permutations) if permutations else [])
    # P numbers for each document that begins here, uint32 [B, P].
    save_arrays(directory / f"{_SURVEY}{unit.name}", {
        "document_lines": np.array(document_lines, np.int64),
        "line_hashes": np.array(line_hashes, np.uint64),
        "signatures": np.reshape(np.array(signatures, np.uint32), (len(signatures), permutations))})
    return unit.name, len(signatures)


def decide(surveys: Mapping[str, Mapping[str, np.ndarray]], settings: CleaningSettings
           ) -> dict[str, np.ndarray]:
    """Returns UNIT/documents and UNIT/lines: numbers to drop, int64 [.], ascending, in the unit.

    `surveys` are those of all units by name; training units come first, in the text's order. The
    first of equal lines and of near-duplicate documents is kept, so that no held-out text occurs in
    the training text. Lines of dropped documents are not compared.
    """
    if not surveys:
        return {}
    # Number the documents of all units; one that continues in several units has one number.
    signatures = np.concatenate([survey["signatures"] for survey in surveys.values()])
    ends = np.cumsum([len(survey["signatures"]) for survey in surveys.values()])
    documents = [slice(end - len(survey["document_lines"]), end)
                 for end, survey in zip(ends, surveys.values(), strict=True)]
    is_near_duplicate = ngrams.near_duplicates(signatures, settings.near_duplicate_threshold)
    # Mark all but the first of equal lines outside these documents.
    hashes = np.concatenate([survey["line_hashes"] for survey in surveys.values()])
    hashes[np.concatenate([
        np.repeat(is_near_duplicate[numbers], survey["document_lines"])
        for numbers, survey in zip(documents, surveys.values(), strict=True)])] = _NO_HASH
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    is_repeated = np.zeros(len(hashes), bool)
    is_repeated[order[1:]] = ordered[1:] == ordered[:-1]
    is_repeated[hashes == _NO_HASH] = False
    # Number documents and lines from 0 within each unit.
    line_ends = np.cumsum([len(survey["line_hashes"]) for survey in surveys.values()])
    lines = np.split(is_repeated, line_ends[:-1])
    return {f"{name}/documents": np.flatnonzero(is_near_duplicate[numbers])
            for name, numbers in zip(surveys, documents, strict=True)} | {
            f"{name}/lines": np.flatnonzero(marks)
            for name, marks in zip(surveys, lines, strict=True)}

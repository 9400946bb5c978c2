"""Prepares the cleaning of a build, and cleans the units of work.

Repeated lines, near-duplicate documents and other languages need a pass over the whole text:
workers write a survey of each unit to a file, `decide` compares the surveys, and a worker reads the
decisions of its unit. Lines are compared by 64-bit hashes: two of 10^8 different lines collide with
a probability of 0.03 %.
"""

import collections
import contextlib
import dataclasses
import functools
import io
import itertools
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.cleaning import line_rules, ngrams
from data_prep.cleaning.benchmarks import BenchmarkTexts
from data_prep.documents import DOCUMENT_END, ReadingNotes, batches, lines_of
from data_prep.settings import (
    LANGUAGE_CHARACTERS,
    LINE_RULES,
    CleaningSettings,
    language_identifier,
)
from data_prep.work_units import CorpusPiece, Progress, Runner, WorkUnit
from electra_tf.core import atomic_file
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path, read_error

FILES = ".cleaning-*"  # Pattern of the plan's files in a build's directory.
_DECISIONS, _TEXTS, _SURVEY = ".cleaning-decisions", ".cleaning-texts", ".cleaning-survey-"
REASONS = ("other_language_documents", "near_duplicate_documents", "duplicate_lines")
"""Reasons to drop documents or lines that a survey finds: names of `manifest.Counts`."""
_BATCH_CHARACTERS = 1 << 18  # Characters that are searched for test texts together.


@dataclasses.dataclass(frozen=True)
class CleaningPlan:
    """The cleaning of the units of one build, small when pickled."""

    settings: CleaningSettings = CleaningSettings()
    directory: Path | None = None  # Directory of the build, which contains the plan's files.

    def clean(self, unit: WorkUnit, tally: collections.Counter[str],
              notes: ReadingNotes | None = None) -> Iterator[str]:
        """Yields the lines of the unit that are kept, and every `DOCUMENT_END`.

        `tally` counts dropped lines and documents by the names of `manifest.Counts`; `notes` counts
        what is read. Raises `UserError` for a damaged text, or if the plan's files are damaged.
        """
        def drop(reason: str, line: str) -> None:
            tally[reason] += 1
            tally["dropped_text_bytes"] += len(line.encode(errors="surrogatepass"))

        lines = lines_of(unit.parts, unit.parse, notes)
        if self.settings.needs_survey or not {*LINE_RULES}.isdisjoint(self.settings.filters()):
            lines = self._kept(unit, lines, tally, drop)
        if not self.settings.decontaminate:
            yield from lines
            return
        texts = _texts(self.directory / _TEXTS)
        for batch in batches(lines, _BATCH_CHARACTERS):
            for line, contaminated in zip(batch, texts.contaminated(batch).tolist(), strict=True):
                if contaminated:
                    drop("contaminated_lines", line)
                else:
                    yield line

    def _kept(self, unit: WorkUnit, lines: Iterable[str], tally: collections.Counter[str],
              drop: Callable[[str, str], None]) -> Iterator[str]:
        """Yields the lines that line rules and the survey keep."""
        dropped_documents: set[int] = set()
        dropped_lines: set[int] = set()
        if self.settings.needs_survey:
            decision = _decision(self.directory / _DECISIONS, unit.name)
            dropped_lines.update(decision.pop("duplicate_lines"))
            for reason, documents in decision.items():
                dropped_documents.update(documents)
                # A document that began in an earlier unit is counted there.
                tally[reason] += len(documents) - (not unit.parts[0].begins and 0 in documents)
        document = number = 0
        for raw in lines:
            if raw == DOCUMENT_END:
                document += 1
                yield raw
                continue
            line = line_rules.normalized(raw, self.settings)
            if document in dropped_documents:
                drop("lines_of_dropped_documents", line)
            elif reason := line_rules.reason_to_drop(line, self.settings):
                drop(reason, line)
            elif number in dropped_lines:
                drop("duplicate_lines", line)
            else:
                yield line
            number += 1


@functools.lru_cache(maxsize=1)
def _texts(path: Path) -> BenchmarkTexts:
    with opened_arrays(path) as arrays:
        return BenchmarkTexts(tuple(arrays["lengths"].tolist()), arrays["ngrams"])


def _decision(path: Path, unit: str) -> dict[str, list[int]]:
    with opened_arrays(path) as arrays:
        return {reason: arrays[f"{unit}/{reason}"].tolist() for reason in REASONS}


def prepare(
    settings: CleaningSettings, texts: BenchmarkTexts | None, directory: Path,
    pieces: Sequence[CorpusPiece], cut: Callable[[CorpusPiece], Iterable[WorkUnit]], runner: Runner,
    progress: Progress,
) -> CleaningPlan:
    """Surveys the text if necessary, and writes the files that workers read.

    Uses the decisions that an interrupted call wrote to the build's `directory`. Raises `UserError`
    for a damaged text.
    """
    if texts is not None:
        _texts.cache_clear()
        save_arrays(directory / _TEXTS, {"lengths": np.array(texts.lengths),
                                                "ngrams": texts.ngrams})
    path = directory / _DECISIONS
    if settings.needs_survey and not path.exists():
        names: list[str] = []
        total = 0
        work = functools.partial(survey_unit, settings, directory)
        for name, documents in runner.run(pieces, cut, work, tuple[str, int]):
            names.append(name)
            total += documents
            progress.update({"documents surveyed": total})
        # Results come in any order, and `decide` needs the text's order.
        names.sort(key=lambda name: [int(part) for part in name.split("-")[1:]])
        surveys = []
        for name in names:
            with opened_arrays(directory / f"{_SURVEY}{name}") as arrays:
                surveys.append(UnitSurvey(**{name: array if array.ndim else array.item()
                                             for name, array in arrays.items()}))
        save_arrays(path, decide(surveys, settings))
        for name in names:
            (directory / f"{_SURVEY}{name}").unlink()
    return CleaningPlan(settings, directory)


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, atomically."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    atomic_file.write_atomically(path, content.getvalue())


@contextlib.contextmanager
def opened_arrays(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Yields the arrays of a file, read on demand; `UserError` if it is damaged or incomplete."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            yield arrays
    except OSError as error:
        raise read_error(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile,
            zlib.error) as error:
        raise UserError(f"{path} is damaged; remove it and give the same command, "
                        "without --overwrite.") from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitSurvey:
    """Facts of a unit's N lines in D documents, of which B begin in the unit."""

    name: str
    split: str
    continues: bool
    """True if the first document began in an earlier unit of the split; then B is D - 1."""
    document_lines: np.ndarray  # uint32 [D]: numbers of the documents' lines in the unit.
    hashed: np.ndarray  # bool [N]: lines with a hash.
    hashes: np.ndarray  # uint64 [H], of the text of these lines.
    in_language: np.ndarray  # bool [B]: documents in a language of --languages.
    has_words: np.ndarray  # bool [B]: documents with a signature.
    signatures: np.ndarray  # uint32 [S, P] of MinHash, of these documents' first parts.


def survey_unit(settings: CleaningSettings, directory: Path, unit: WorkUnit) -> tuple[str, int]:
    """Writes the survey of a unit to a file, 9 bytes per line; `UserError` for a damaged text.

    Returns the unit's name and number of documents.
    """
    document_lines: list[int] = []
    hashed: list[bool] = []
    hashes: list[int] = []
    in_language: list[bool] = []
    has_words: list[bool] = []
    signatures: list[np.ndarray] = []
    for part in unit.parts:
        lines = [line_rules.normalized(line, settings)
                 for line in lines_of([part], unit.parse) if line != DOCUMENT_END]
        keep = [not line_rules.reason_to_drop(line, settings) for line in lines]
        kept = list(itertools.compress(lines, keep))
        if settings.drop_duplicate_lines:
            min_characters = settings.min_duplicate_characters
            hashed += [is_kept and len(line) >= min_characters
                       for is_kept, line in zip(keep, lines, strict=True)]
            hashes += [ngrams.text_hash(line) for line in kept if len(line) >= min_characters]
        if part.begins or not document_lines:
            document_lines.append(0)
        document_lines[-1] += len(lines)
        if part.begins:
            text = "\n".join(kept)
            beginning = text[:LANGUAGE_CHARACTERS]
            in_language.append(
                not settings.languages
                or sum(map(str.isalpha, beginning)) < settings.min_language_characters
                or sum(probability for code, probability in language_identifier().rank(beginning)
                       if code in settings.languages) >= settings.language_confidence)
            has_words.append(settings.drop_near_duplicates and in_language[-1]
                             and bool(ngrams.words_of(text)))
            if has_words[-1]:
                signatures.append(ngrams.signature(text, settings.near_duplicate_permutations))
    survey = UnitSurvey(
        name=unit.name, split=unit.split, continues=not unit.parts[0].begins,
        document_lines=np.array(document_lines, np.uint32), hashed=np.array(hashed, bool),
        hashes=np.array(hashes, np.uint64), in_language=np.array(in_language, bool),
        has_words=np.array(has_words, bool), signatures=np.stack(signatures) if signatures else
        np.zeros((0, settings.near_duplicate_permutations), np.uint32))
    save_arrays(directory / f"{_SURVEY}{unit.name}", dataclasses.asdict(survey))
    return unit.name, len(in_language)


def decide(surveys: Iterable[UnitSurvey], settings: CleaningSettings) -> dict[str, np.ndarray]:
    """Returns UNIT/REASON -> numbers of the documents or lines to drop, uint32 [.], ascending.

    The keys are all units with all `REASONS`. Numbers count from 0 within the unit, before
    cleaning. The units of a split must be in the text's order.

    The first of equal lines and of near-duplicate documents is kept. Lines of dropped documents are
    not compared. Training documents precede held-out ones, so no held-out text occurs in the
    training text.
    """
    ordered = sorted(surveys, key=lambda survey: survey.split != "train")
    similar = [np.zeros(len(survey.has_words), bool) for survey in ordered]
    near_duplicates = ngrams.near_duplicates([survey.signatures for survey in ordered],
                                             settings.near_duplicate_threshold)
    start = 0
    for survey, marks in zip(ordered, similar, strict=True):
        end = start + len(survey.signatures)
        marks[survey.has_words] = near_duplicates[start:end]
        start = end
    foreign = list(_with_continuations(ordered, [~survey.in_language for survey in ordered]))
    similar = list(_with_continuations(ordered, similar))
    lines = _duplicate_lines(ordered, [a | b for a, b in zip(foreign, similar, strict=True)])
    return {f"{survey.name}/{reason}": np.flatnonzero(marks).astype(np.uint32)
            for survey, *unit_marks in zip(ordered, foreign, similar, lines, strict=True)
            for reason, marks in zip(REASONS, unit_marks, strict=True)}


def _with_continuations(surveys: Sequence[UnitSurvey], beginning: Iterable[np.ndarray]
                        ) -> Iterator[np.ndarray]:
    """Yields bool [D] from bool [B]: a continued document has the decision of its beginning."""
    last = False
    for survey, marks in zip(surveys, beginning, strict=True):
        if survey.continues:
            marks = np.concatenate([[last], marks]).astype(bool)
        yield marks
        last = bool(marks[-1])


def _duplicate_lines(surveys: Sequence[UnitSurvey], dropped: Sequence[np.ndarray]
                     ) -> Iterator[np.ndarray]:
    """Yields bool [N] for each unit, True for lines that equal an earlier line.

    It ignores the lines of the documents that bool [D], one for each unit, marks as `dropped`.
    """
    kept = [np.repeat(~documents, survey.document_lines)[survey.hashed] if len(survey.hashed) else
            np.zeros(0, bool) for survey, documents in zip(surveys, dropped, strict=True)]
    hashes = np.sort(np.concatenate([
        np.zeros(0, np.uint64), *(survey.hashes[mask] for survey, mask in zip(
            surveys, kept, strict=True))]))
    repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    del hashes
    seen = np.zeros(len(repeated), bool)
    for survey, mask in zip(surveys, kept, strict=True):
        numbers, is_repeated = ngrams.positions(survey.hashes[mask], repeated)
        values, first = np.unique(numbers[is_repeated], return_index=True)
        is_repeated[np.flatnonzero(is_repeated)[first[~seen[values]]]] = False
        seen[values] = True
        lines = np.zeros(len(survey.hashed), bool)
        lines[np.flatnonzero(survey.hashed)[mask]] = is_repeated
        yield lines

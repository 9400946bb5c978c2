"""Prepares the cleaning of a build, and cleans the units of work."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from data_prep.cleaning import line_rules, survey
from data_prep.cleaning.benchmarks import BenchmarkTexts
from data_prep.cleaning.settings import LINE_RULES, CleaningSettings
from data_prep.documents import DOCUMENT_END, batches
from data_prep.work_units import CorpusPiece, Progress, Runner, WorkUnit
from electra_tf.platform.storage import Path

FILES = ".cleaning-*"
"""Pattern of the plan's files in a build's directory."""
_DECISIONS, _TEXTS, _SURVEY = ".cleaning-decisions", ".cleaning-texts", ".cleaning-survey-"
_BATCH_CHARACTERS = 1 << 18
"""Characters that are searched for test texts together."""


class Cleaner:
    """The cleaning of one unit's lines.

    `tally` counts dropped lines and documents by the names of `manifest.Counts`. `decision` maps
    `survey.REASONS` to numbers of documents or lines in the unit. `continues` is True if the unit's
    first document began in an earlier unit.
    """

    def __init__(self, settings: CleaningSettings, texts: BenchmarkTexts | None,
                 decision: Mapping[str, Sequence[int]] | None, continues: bool):
        self._settings, self._texts, self._decision = settings, texts, decision
        self._documents: set[int] = set()
        self._lines: set[int] = set()
        self.tally: collections.Counter[str] = collections.Counter()
        if decision is not None:
            *documents, lines = survey.REASONS
            self._lines.update(decision[lines])
            for reason in documents:
                self._documents.update(decision[reason])
                self.tally[reason] = len(decision[reason]) - (continues and 0 in decision[reason])

    def clean(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines of the unit that are kept, and every `DOCUMENT_END`."""
        if self._decision is not None or not {*LINE_RULES}.isdisjoint(self._settings.filters()):
            lines = self._kept(lines)
        if self._texts is None:
            yield from lines
            return
        for batch in batches(lines, _BATCH_CHARACTERS):
            contaminated = self._texts.contaminated(batch).tolist()
            for line, is_contaminated in zip(batch, contaminated, strict=True):
                if is_contaminated:
                    self._drop("contaminated_lines", line)
                else:
                    yield line

    def _kept(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines that line rules and the survey keep."""
        document = number = 0
        for raw in lines:
            if raw == DOCUMENT_END:
                document += 1
                yield raw
                continue
            line = line_rules.normalized(raw, self._settings)
            reason = line_rules.reason_to_drop(line, self._settings)
            if document in self._documents:
                self._drop("lines_of_dropped_documents", line)
            elif reason:
                self._drop(reason, line)
            elif number in self._lines:
                self._drop("duplicate_lines", line)
            else:
                yield line
            number += 1

    def _drop(self, reason: str, line: str) -> None:
        self.tally[reason] += 1
        self.tally["dropped_text_bytes"] += len(line.encode(errors="surrogatepass"))


@dataclasses.dataclass(frozen=True)
class CleaningPlan:
    """The cleaning of the units of one build, small when pickled."""

    settings: CleaningSettings = CleaningSettings()
    directory: Path | None = None
    """Directory of the build, which contains the plan's files."""

    def cleaner(self, unit: WorkUnit) -> Cleaner:
        """Returns the cleaner of a unit; `UserError` if the plan's files are damaged."""
        settings, directory = self.settings, self.directory
        return Cleaner(
            settings, _texts(directory / _TEXTS) if settings.decontaminate else None,
            _decision(directory / _DECISIONS, unit.name) if settings.needs_survey else None,
            continues=not unit.parts[0].begins)


@functools.lru_cache(maxsize=1)
def _texts(path: Path) -> BenchmarkTexts:
    with survey.opened_arrays(path) as arrays:
        return BenchmarkTexts(tuple(arrays["lengths"].tolist()), arrays["ngrams"])


def _decision(path: Path, unit: str) -> dict[str, list[int]]:
    with survey.opened_arrays(path) as arrays:
        return {reason: arrays[f"{unit}/{reason}"].tolist() for reason in survey.REASONS}


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
        survey.save_arrays(directory / _TEXTS, {"lengths": np.array(texts.lengths),
                                                "ngrams": texts.ngrams})
    path = directory / _DECISIONS
    if settings.needs_survey and not path.exists():
        names: list[str] = []
        total = 0
        work = functools.partial(_save_survey, settings, directory)
        for name, documents in runner.run(pieces, cut, work, tuple[str, int]):
            names.append(name)
            total += documents
            progress.update({"documents surveyed": total})
        # Results come in any order, and `decide` needs the text's order.
        names.sort(key=lambda name: [int(part) for part in name.split("-")[1:]])
        surveys = [survey.UnitSurvey.load(directory / f"{_SURVEY}{name}") for name in names]
        survey.save_arrays(path, survey.decide(surveys, settings))
        for name in names:
            (directory / f"{_SURVEY}{name}").unlink()
    return CleaningPlan(settings, directory)


def _save_survey(settings: CleaningSettings, directory: Path, unit: WorkUnit) -> tuple[str, int]:
    """Writes the survey of a unit to a file; returns the unit's name and number of documents."""
    facts = survey.survey_unit(settings, unit)
    survey.save_arrays(directory / f"{_SURVEY}{unit.name}", dataclasses.asdict(facts))
    return unit.name, len(facts.in_language)

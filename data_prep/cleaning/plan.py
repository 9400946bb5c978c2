"""What is done before the first unit is cleaned, and how a worker gets its cleaner."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from data_prep.cleaning import decisions
from data_prep.cleaning.benchmark_texts import BenchmarkTexts
from data_prep.cleaning.cleaner import Cleaner
from data_prep.cleaning.line_rules import LineRules
from data_prep.cleaning.settings import CleaningSettings
from data_prep.cleaning.survey import UnitSurvey, survey
from data_prep.work_units import Piece, Runner, WorkUnit
from electra_tf.platform import storage
from electra_tf.platform.storage import Path

FILES = ".cleaning-*"
"""What a plan keeps in the directory of a build."""
_DECISIONS, _TEXTS = ".cleaning-decisions", ".cleaning-texts"


@dataclasses.dataclass(frozen=True)
class CleaningPlan:
    """How the units of one build are cleaned. It can be pickled, and is small."""

    settings: CleaningSettings = CleaningSettings()
    directory: Path | None = None
    """Of the build, with this plan's files."""
    build: str = ""
    """A digest of all that decides the build."""

    def cleaner(self, unit: WorkUnit) -> Cleaner:
        """Returns what cleans a unit.

        Raises:
            UserError: a file of the plan is gone or damaged.
        """
        wanted = self.settings
        return Cleaner(
            LineRules(wanted),
            _texts(self.directory / _TEXTS, self.build) if wanted.decontaminate else None,
            decisions.load(self.directory / _DECISIONS, self.build, unit.name)
            if wanted.needs_survey else None,
            continues=not unit.parts[0].begins)


NO_CLEANING = CleaningPlan()


@functools.lru_cache(maxsize=2)
def _texts(path: Path, _build: str) -> BenchmarkTexts:
    return BenchmarkTexts.load(path)


def benchmark_texts(settings: CleaningSettings) -> BenchmarkTexts | None:
    """Returns what --decontaminate names, read; None if it names nothing.

    Raises:
        UserError: it names no directory of task files.
    """
    if not settings.decontaminate:
        return None
    # Here, because it is for builds that ask for it.
    from data_prep.cleaning import benchmark_files
    return benchmark_files.read(storage.path(settings.decontaminate),
                                settings.decontaminate_words)


def identity(texts: BenchmarkTexts | None) -> dict[str, str | int]:
    """Returns what `benchmark_texts` adds to what decides a build."""
    if texts is None:
        return {}
    return {"decontaminate_sha256": texts.sha256, "decontaminate_texts": texts.texts}


def prepare(
    settings: CleaningSettings, texts: BenchmarkTexts | None, directory: Path,
    build: Mapping[str, object], pieces: Sequence[Piece],
    cut: Callable[[Piece], Iterable[WorkUnit]], runner: Runner, progress: Callable[[int], None],
) -> CleaningPlan:
    """Surveys the text if need be, and leaves in the directory what the workers read.

    Args:
        settings: the measures.
        texts: from `benchmark_texts`.
        directory: of the build, which belongs to it already.
        build: all that decides the build; decisions of an interrupted one are used again.
        pieces: of the corpus.
        cut: returns the units of a piece.
        runner: does the survey; nothing depends on it.
        progress: is called with the number of documents surveyed so far.
    """
    plan = CleaningPlan(settings, directory, decisions.digest(build))
    if texts is not None:
        texts.save(directory / _TEXTS)
    path = directory / _DECISIONS
    if settings.needs_survey and not decisions.are_saved(path, plan.build):
        names: list[str] = []
        documents = 0
        work = functools.partial(_surveyed, settings, directory)
        for name, found in runner.run(pieces, cut, work, tuple[str, int]):
            names.append(name)
            documents += found
            progress(documents)
        names.sort(key=_place)
        decisions.save(path, plan.build, decisions.decide(
            [UnitSurvey.load(_survey_file(directory, name)) for name in names], settings))
        for name in names:
            _survey_file(directory, name).unlink()
    return plan


def _surveyed(settings: CleaningSettings, directory: Path, unit: WorkUnit) -> tuple[str, int]:
    """Leaves the survey of a unit in a file; returns the unit's name and documents."""
    found = survey(settings, unit)
    found.save(_survey_file(directory, unit.name))
    return found.name, len(found.in_language)


def _survey_file(directory: Path, name: str) -> Path:
    return directory / f".cleaning-survey-{name}"


def _place(name: str) -> list[int]:
    """Orders the names of a split's units as the text goes."""
    return [int(part) for part in name.split("-")[1:]]

"""Decides by a pass over the whole text which documents and lines cleaning drops.

Workers write a survey of each unit to a file; the decisions are one file, of which a worker reads
its part. Lines are compared by 64-bit hashes: two of 10^8 different lines collide with a
probability of 0.03 %. py3langid (Lui and Baldwin, 2012, "langid.py"), a naive Bayes classifier over
byte n-grams, identifies languages.
"""

import contextlib
import dataclasses
import functools
import io
import itertools
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.cleaning import ngrams
from data_prep.cleaning.line_rules import LineRules
from data_prep.cleaning.settings import CleaningSettings
from data_prep.documents import DOCUMENT_END
from data_prep.work_units import WorkUnit
from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path, cannot_read

REASONS = ("other_language_documents", "near_duplicate_documents", "duplicate_lines")
"""Reasons of a survey to drop documents or lines, by the names of `manifest.Counts`."""
_JUDGED = 2000
"""Characters of a document's beginning that decide its language."""


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, atomically."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    atomic_file.write_atomically(path, content.getvalue())


@contextlib.contextmanager
def opened_arrays(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Yields the arrays of a file, read on demand; `UserError` if it is damaged or incomplete."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            yield found
    except OSError as error:
        raise cannot_read(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile,
            zlib.error) as error:
        raise UserError(f"{path} is damaged; remove it and give the same command again.") from error


def require_languages(codes: Sequence[str]) -> None:
    """Raises `UserError` for a language that the classifier lacks."""
    known = _identifier().labels
    for code in codes:
        if code not in known:
            raise UserError(f"--languages: {shown(code)} is no known language code; there are "
                            f"{', '.join(sorted(known))}.")


def _is_in_language(text: str, settings: CleaningSettings) -> bool:
    """Returns True if a text's beginning is in a language of --languages, or too short."""
    beginning = text[:_JUDGED]
    if sum(map(str.isalpha, beginning)) < settings.min_language_characters:
        return True
    return sum(probability for code, probability in _identifier().rank(beginning)
               if code in settings.languages) >= settings.language_confidence


@functools.cache
def _identifier() -> Any:
    from py3langid import langid  # It takes a second; few builds need it.

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitSurvey:
    """A unit's lines and documents. N lines in D documents, of which B begin in the unit."""

    name: str
    split: str
    continues: bool
    """True if the first document began in an earlier unit of the split; then B is D - 1."""
    document_lines: np.ndarray
    """uint32 [D]: numbers of the documents' lines in the unit."""
    hashed: np.ndarray
    """bool [N]: lines with a hash."""
    hashes: np.ndarray
    """uint64 [H], of the text of these lines."""
    in_language: np.ndarray
    """bool [B]: documents in a language of --languages."""
    has_words: np.ndarray
    """bool [B]: documents with a signature."""
    signatures: np.ndarray
    """uint32 [S, P] of MinHash, of these documents' first parts."""

    @classmethod
    def load(cls, path: Path) -> "UnitSurvey":
        """Reads a file of the fields."""
        with opened_arrays(path) as found:
            return cls(**{name: array if array.ndim else array.item()
                          for name, array in found.items()})


def survey(settings: CleaningSettings, unit: WorkUnit) -> UnitSurvey:
    """Surveys a unit; the result takes 9 bytes a line."""
    rules = LineRules(settings)
    document_lines: list[int] = []
    hashed: list[bool] = []
    hashes: list[int] = []
    in_language: list[bool] = []
    signatures: list[np.ndarray | None] = []
    begins = True
    for part in unit.parts:
        lines = [rules.normalized(line) for line in dataclasses.replace(unit, parts=(part,)).lines()
                 if line != DOCUMENT_END]
        stays = [not rules.reason(line) for line in lines]
        left = list(itertools.compress(lines, stays))
        if settings.drop_duplicate_lines:
            least = settings.min_duplicate_characters
            hashed += [one and len(line) >= least for one, line in zip(stays, lines, strict=True)]
            hashes += [ngrams.text_hash(line) for line in left if len(line) >= least]
        if begins:
            document_lines.append(0)
        document_lines[-1] += len(lines)
        if part.begins:
            text = "\n".join(left)
            in_language.append(not settings.languages or _is_in_language(text, settings))
            wanted = settings.drop_near_duplicates and in_language[-1] and ngrams.words_of(text)
            signatures.append(ngrams.signature(text, settings.near_duplicate_permutations)
                              if wanted else None)
        begins = part.ends
    known = [one for one in signatures if one is not None]
    return UnitSurvey(
        name=unit.name, split=unit.split, continues=not unit.parts[0].begins,
        document_lines=np.array(document_lines, np.uint32), hashed=np.array(hashed, bool),
        hashes=np.array(hashes, np.uint64), in_language=np.array(in_language, bool),
        has_words=np.array([one is not None for one in signatures], bool),
        signatures=np.stack(known) if known else np.zeros(
            (0, settings.near_duplicate_permutations), np.uint32))


def decide(surveys: Iterable[UnitSurvey], settings: CleaningSettings) -> dict[str, np.ndarray]:
    """Returns UNIT/REASON, for the `REASONS` of all units -> numbers of dropped documents or lines.

    Numbers count from 0 within the unit, before cleaning. A line of a dropped document is no
    duplicate line. The units of a split are in the text's order.

    The first of equal lines and of similar documents is kept. Training documents come first, then
    those held out, so no held-out text occurs in the training text.
    """
    ordered = sorted(surveys, key=lambda one: one.split != "train")
    foreign = list(_with_continuations(ordered, [~one.in_language for one in ordered]))
    copied = list(_with_continuations(ordered, _copies(ordered, settings)))
    gone = [one | other for one, other in zip(foreign, copied, strict=True)]
    lines = _later_lines(ordered, gone)
    return {f"{one.name}/{reason}": np.flatnonzero(dropped).astype(np.uint32)
            for one, *found in zip(ordered, foreign, copied, lines, strict=True)
            for reason, dropped in zip(REASONS, found, strict=True)}


def _copies(surveys: Sequence[UnitSurvey], settings: CleaningSettings) -> Iterator[np.ndarray]:
    """Yields for each unit bool [B]: its documents that nearly equal an earlier one."""
    found = ngrams.copies([one.signatures for one in surveys], settings.near_duplicate_threshold)
    place = 0
    for one in surveys:
        copied = np.zeros(len(one.has_words), bool)
        copied[one.has_words] = found[place:place + len(one.signatures)]
        place += len(one.signatures)
        yield copied


def _with_continuations(surveys: Sequence[UnitSurvey], beginning: Iterable[np.ndarray]
                        ) -> Iterator[np.ndarray]:
    """Yields bool [D] from bool [B]: a continued document follows the decision of its beginning."""
    last = False
    for one, found in zip(surveys, beginning, strict=True):
        whole = np.concatenate([[last], found]).astype(bool) if one.continues else found
        yield whole
        last = bool(whole[-1])


def _later_lines(surveys: Sequence[UnitSurvey], gone: Sequence[np.ndarray]
                 ) -> Iterator[np.ndarray]:
    """Yields for each unit bool [N], True for lines that occur in an earlier place that stays."""
    stays = [np.repeat(~documents, one.document_lines)[one.hashed] if len(one.hashed) else
             np.zeros(0, bool) for one, documents in zip(surveys, gone, strict=True)]
    hashes = [one.hashes[left] for one, left in zip(surveys, stays, strict=True)]
    for one, left, later in zip(surveys, stays, _later_ones(hashes), strict=True):
        lines = np.zeros(len(one.hashed), bool)
        lines[np.flatnonzero(one.hashed)[left]] = later
        yield lines


def _later_ones(hashes: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yields bool [N] for each uint64 [N], True for hashes that occurred earlier."""
    whole = np.sort(np.concatenate(hashes)) if len(hashes) else np.zeros(0, np.uint64)
    repeated = np.unique(whole[1:][whole[1:] == whole[:-1]])
    seen = np.zeros(len(repeated), bool)
    for here in hashes:
        later = np.zeros(len(here), bool)
        numbers, is_repeated = ngrams.positions(here, repeated)
        places = np.flatnonzero(is_repeated)
        values, first = np.unique(numbers[places], return_index=True)
        later[places] = True
        later[places[first[~seen[values]]]] = False
        seen[values] = True
        yield later

"""What goes of a text, decided by its survey; kept in a file, of which a worker reads its part.

Lines are compared by 64-bit hashes: of 10^8 different lines two have the same one with a
probability of 0.03 %.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from data_prep.cleaning import arrays, near_duplicates
from data_prep.cleaning.settings import CleaningSettings
from data_prep.cleaning.survey import UnitSurvey
from data_prep.cleaning.word_ngrams import positions
from electra_tf.platform.storage import Path


@dataclasses.dataclass(frozen=True)
class UnitDecision:
    """What goes of one unit, by ascending numbers from 0 on within it."""

    other_language_documents: Sequence[int] = ()
    near_duplicate_documents: Sequence[int] = ()
    duplicate_lines: Sequence[int] = ()
    """Of the unit's lines before any of them went; none of the documents above."""


_FIELDS = tuple(field.name for field in dataclasses.fields(UnitDecision))


def decide(surveys: Iterable[UnitSurvey], settings: CleaningSettings) -> dict[str, UnitDecision]:
    """Returns what is dropped, by unit name; the units of a split come in the text's order.

    The first of equal lines and of similar documents is kept. Training documents come first, then
    those held out, so no held-out text occurs in the training text.
    """
    ordered = sorted(surveys, key=lambda one: one.split != "train")
    foreign = list(_with_continuations(ordered, [~one.in_language for one in ordered]))
    copied = list(_with_continuations(ordered, _copies(ordered, settings)))
    gone = [one | other for one, other in zip(foreign, copied, strict=True)]
    lines = _later_lines(ordered, gone)
    return {one.name: UnitDecision(*map(np.flatnonzero, numbers))
            for one, *numbers in zip(ordered, foreign, copied, lines, strict=True)}


def save(path: Path, build: str, decisions: Mapping[str, UnitDecision]) -> None:
    """Writes decisions atomically; `build` is a digest of all that they follow from."""
    arrays.save(path, {"build": np.array(build)} | {
        f"{name}/{field}": np.asarray(getattr(decision, field), np.uint32)
        for name, decision in decisions.items() for field in _FIELDS})


def are_saved(path: Path, build: str) -> bool:
    """Tells whether a file holds the decisions of a build."""
    if not path.exists():
        return False
    with arrays.opened(path) as found:
        return str(found["build"]) == build


def load(path: Path, build: str, name: str) -> UnitDecision:
    """Returns what is dropped of a unit; `UserError` if the file is gone, damaged or of another
    build.
    """
    with arrays.opened(path) as found:
        if str(found["build"]) != build:
            raise KeyError(build)
        return UnitDecision(*(found[f"{name}/{field}"] for field in _FIELDS))


def digest(identity: Mapping[str, object]) -> str:
    """Returns a digest of what decides a build, as `save` takes it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _copies(surveys: Sequence[UnitSurvey], settings: CleaningSettings) -> Iterator[np.ndarray]:
    """Yields for each unit bool [B]: its documents that nearly equal an earlier one."""
    found = near_duplicates.copies([one.signatures for one in surveys],
                                   settings.near_duplicate_threshold)
    place = 0
    for one in surveys:
        copied = np.zeros(len(one.has_words), bool)
        copied[one.has_words] = found[place:place + len(one.signatures)]
        place += len(one.signatures)
        yield copied


def _with_continuations(surveys: Sequence[UnitSurvey], beginning: Iterable[np.ndarray]
                        ) -> Iterator[np.ndarray]:
    """Yields bool [D] of bool [B]: a document that goes on goes as it did in the unit before."""
    last = False
    for one, found in zip(surveys, beginning, strict=True):
        whole = np.concatenate([[last], found]).astype(bool) if one.continues else found
        yield whole
        last = bool(whole[-1])


def _later_lines(surveys: Sequence[UnitSurvey], gone: Sequence[np.ndarray]
                 ) -> Iterator[np.ndarray]:
    """Yields for each unit bool [N]: the lines that stood in an earlier place that stays."""
    stays = [np.repeat(~documents, one.document_lines)[one.hashed] if len(one.hashed) else
             np.zeros(0, bool) for one, documents in zip(surveys, gone, strict=True)]
    hashes = [one.hashes if left.all() else one.hashes[left]
              for one, left in zip(surveys, stays, strict=True)]
    for one, left, later in zip(surveys, stays, later_ones(hashes), strict=True):
        lines = np.zeros(len(one.hashed), bool)
        lines[np.flatnonzero(one.hashed)[left]] = later
        yield lines


def later_ones(hashes: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yields for each array, uint64 [N], bool [N]: which hashes occurred earlier, in it or before
    it.
    """
    repeated = _repeated(hashes)
    seen = np.zeros(len(repeated), bool)
    for here in hashes:
        later = np.zeros(len(here), bool)
        numbers, is_repeated = positions(here, repeated)
        places = np.flatnonzero(is_repeated)
        values, first = np.unique(numbers[places], return_index=True)
        later[places] = True
        later[places[first[~seen[values]]]] = False
        seen[values] = True
        yield later


def _repeated(hashes: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the hashes that occur more than once, ascending."""
    whole = np.concatenate(hashes) if len(hashes) else np.zeros(0, np.uint64)
    whole.sort()
    return np.unique(whole[1:][whole[1:] == whole[:-1]])

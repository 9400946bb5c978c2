"""What goes of a text, decided by its survey; kept in a file, of which a worker reads its part.

The file is a line of JSON, which says where the numbers of each unit are, and the numbers, uint32
in little-endian order.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from data_prep.cleaning import near_duplicates, repeated_lines
from data_prep.cleaning.settings import CleaningSettings
from data_prep.cleaning.survey import UnitSurvey
from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.bounded import MIB, cannot_read
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

_LONGEST_HEAD = 64 * MIB
"""A unit takes 50 bytes there."""
_NUMBER = np.dtype("<u4")


@dataclasses.dataclass(frozen=True)
class UnitDecision:
    """What goes of one unit, by ascending numbers from 0 on within it."""

    other_language_documents: Sequence[int] = ()
    near_duplicate_documents: Sequence[int] = ()
    duplicate_lines: Sequence[int] = ()
    """Of the unit's lines before any of them went; none of the documents above."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Head:
    """The file's first line."""

    __pydantic_config__ = strict_json.STRICT

    build: str
    """A digest of all that the decisions follow from."""
    units: Mapping[str, tuple[int, int, int, int]]
    """Name -> its first number's place, and how many numbers `UnitDecision`'s fields have."""


def decide(surveys: Iterable[UnitSurvey], settings: CleaningSettings) -> dict[str, UnitDecision]:
    """Returns what goes, by the unit's name.

    Of equal lines and of similar documents the first stays. Training documents come first, then
    those held out, both in the text's order: so nothing that is held out stands in what is
    trained on.

    Args:
        surveys: of all units, those of a split in the text's order.
        settings: the measures.
    """
    ordered = sorted(surveys, key=lambda one: one.split != "train")
    foreign = list(_with_continuations(ordered, [~one.in_language for one in ordered]))
    copied = list(_with_continuations(ordered, _copies(ordered, settings)))
    gone = [one | other for one, other in zip(foreign, copied, strict=True)]
    lines = _later_lines(ordered, gone)
    return {one.name: UnitDecision(*map(np.flatnonzero, numbers))
            for one, *numbers in zip(ordered, foreign, copied, lines, strict=True)}


def save(path: Path, build: str, decisions: Mapping[str, UnitDecision]) -> None:
    """Writes decisions atomically; raises UserError if it can't.

    Args:
        path: of the file.
        build: a digest of all that they follow from.
        decisions: by unit.
    """
    units, numbers, place = {}, [], 0
    for name, decision in decisions.items():
        found = [np.asarray(one, _NUMBER) for one in _fields(decision)]
        units[name] = (place, *map(len, found))
        numbers += found
        place += sum(map(len, found))
    head = json.dumps({"build": build, "units": units}, separators=(",", ":"))
    content = [head.encode(), b"\n", *(one.tobytes() for one in numbers)]
    atomic_file.write_atomically(path, b"".join(content))


def are_saved(path: Path, build: str) -> bool:
    """Tells whether a file holds the decisions of a build."""
    return path.exists() and _head(path)[0].build == build


def load(path: Path, build: str, name: str) -> UnitDecision:
    """Returns what goes of the unit of a name.

    Raises:
        UserError: the file is gone, damaged or of another build.
    """
    head, begin = _known_head(path, build)
    if name not in head.units:
        raise _damaged(path)
    place, *counts = head.units[name]
    try:
        with path.open("rb") as file:
            file.seek(begin + place * _NUMBER.itemsize)
            content = file.read(sum(counts) * _NUMBER.itemsize)
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(content) != sum(counts) * _NUMBER.itemsize:
        raise _damaged(path)
    numbers = np.frombuffer(content, _NUMBER)
    return UnitDecision(*np.split(numbers, np.cumsum(counts)[:-1]))


def digest(identity: Mapping[str, object]) -> str:
    """Returns a digest of what decides a build, as `save` takes it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _fields(decision: UnitDecision) -> list[Sequence[int]]:
    return [getattr(decision, field.name) for field in dataclasses.fields(decision)]


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
    for one, left, later in zip(surveys, stays, repeated_lines.later_ones(hashes), strict=True):
        lines = np.zeros(len(one.hashed), bool)
        lines[np.flatnonzero(one.hashed)[left]] = later
        yield lines


@functools.lru_cache(maxsize=2)
def _known_head(path: Path, build: str) -> tuple[_Head, int]:
    head, begin = _head(path)
    if head.build != build:
        raise _damaged(path)
    return head, begin


def _head(path: Path) -> tuple[_Head, int]:
    """Returns the first line, and where the numbers begin."""
    try:
        with path.open("rb") as file:
            line = file.readline(_LONGEST_HEAD)
            return strict_json.loads(line, _Head), len(line)
    except OSError as error:
        raise cannot_read(path, error) from error
    except strict_json.Unreadable as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> UserError:
    return UserError(f"{path} is damaged; remove it, and the text is surveyed again.")

"""What has to be known of each unit of a text before it is decided what goes."""

import dataclasses
import itertools

import numpy as np

from data_prep.cleaning import arrays, languages, near_duplicates
from data_prep.cleaning.line_rules import LineRules
from data_prep.cleaning.settings import CleaningSettings
from data_prep.cleaning.word_ngrams import text_hash, words_of
from data_prep.documents import DOCUMENT_END, DocumentPart, ReadingNotes
from data_prep.work_units import WorkUnit
from electra_tf.platform.storage import Path


@dataclasses.dataclass(frozen=True, kw_only=True)
class UnitSurvey:
    """A unit's lines and documents. N lines in D documents, of which B begin in the unit."""

    name: str
    """The unit's."""
    split: str
    continues: bool
    """Whether the first document began in an earlier unit of the split; then B is D - 1."""
    document_lines: np.ndarray
    """uint32 [D]: lines of the documents, as far as they are in the unit."""
    hashed: np.ndarray
    """bool [N]: the lines of which there is a hash."""
    hashes: np.ndarray
    """uint64 [H], of the text of these lines."""
    in_language: np.ndarray
    """bool [B]: documents that are in a language asked for."""
    has_words: np.ndarray
    """bool [B]: documents of which there is a signature."""
    signatures: np.ndarray
    """uint32 [S, P] of MinHash, of these documents' first parts."""

    def save(self, path: Path) -> None:
        """Writes the survey atomically; raises UserError if it can't."""
        arrays.save(path, dataclasses.asdict(self))

    @classmethod
    def load(cls, path: Path) -> "UnitSurvey":
        """Reads what `save` wrote."""
        with arrays.opened(path) as found:
            return cls(**{field.name: found[field.name] if found[field.name].ndim else
                          found[field.name].item() for field in dataclasses.fields(cls)})


def survey(settings: CleaningSettings, unit: WorkUnit) -> UnitSurvey:
    """Returns what is to be known of a unit; it takes 9 bytes a line."""
    rules = LineRules(settings)
    document_lines: list[int] = []
    hashed: list[bool] = []
    hashes: list[int] = []
    in_language: list[bool] = []
    signatures: list[np.ndarray | None] = []
    begins = True
    for part in unit.parts:
        lines = _lines(unit, part, rules)
        stays = [not rules.reason(line) for line in lines]
        left = list(itertools.compress(lines, stays))
        if settings.drop_duplicate_lines:
            least = settings.min_duplicate_characters
            hashed += [one and len(line) >= least for one, line in zip(stays, lines, strict=True)]
            hashes += [text_hash(line) for line in left if len(line) >= least]
        if begins:
            document_lines.append(0)
        document_lines[-1] += len(lines)
        if part.begins:
            text = "\n".join(left)
            in_language.append(not settings.languages or languages.is_in(
                text, settings.languages, settings.language_confidence,
                settings.min_language_characters))
            signatures.append(_signature(text, settings) if in_language[-1] else None)
        begins = part.ends
    known = [one for one in signatures if one is not None]
    return UnitSurvey(
        name=unit.name, split=unit.split, continues=not unit.parts[0].begins,
        document_lines=np.array(document_lines, np.uint32), hashed=np.array(hashed, bool),
        hashes=np.array(hashes, np.uint64), in_language=np.array(in_language, bool),
        has_words=np.array([one is not None for one in signatures], bool),
        signatures=np.stack(known) if known else np.zeros(
            (0, settings.near_duplicate_permutations), np.uint32))


def _lines(unit: WorkUnit, part: DocumentPart, rules: LineRules) -> list[str]:
    alone = dataclasses.replace(unit, parts=(part,))
    notes = ReadingNotes()  # Whoever builds the unit's shard says what was skipped.
    return [rules.normalized(line) for line in alone.lines(notes) if line != DOCUMENT_END]


def _signature(text: str, settings: CleaningSettings) -> np.ndarray | None:
    if not settings.drop_near_duplicates or not words_of(text):
        return None
    return near_duplicates.signature(text, settings.near_duplicate_permutations)

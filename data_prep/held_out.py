"""Which documents are kept from training: a fraction of them by their hash, of few documents one.

What a document's hash says doesn't depend on its place, so any cut of a corpus into files, units
and machines holds out the same documents, and copies of a document stay on one side.
"""

import dataclasses
import statistics
from collections.abc import Iterable

from data_prep.documents import DocumentPart

_KEYS = 2**64


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """A rule that knows a document by its key, a hash in [0, 2^64)."""

    below: int = 0
    """Keys below are held out; 0: none."""
    only: int | None = None
    """The one key that is, where a fraction of so few documents would be none."""

    def __contains__(self, key: int) -> bool:
        return key < self.below if self.only is None else key == self.only


NOTHING = HeldOut()


def held_out_of(parts: Iterable[DocumentPart], fraction: float) -> HeldOut:
    """Returns the rule for a text, after a look at its first documents.

    These are at least 1 / (2 * fraction), and as many as it takes to meet one that is held out
    and one that isn't. Of fewer documents the one of median length is held out, if there are at
    least two.

    Args:
        parts: the documents in any order, the parts of one after another.
        fraction: f, the probability of being held out. 0 holds out none.
    """
    if not fraction:
        return NOTHING
    rule = HeldOut(below=round(fraction * _KEYS))
    documents: list[tuple[int, int]] = []
    sides = set()
    for part in parts:
        if part.damage:
            continue
        if part.begins:
            if len(documents) > 0.5 / fraction and len(sides) == 2:
                return rule
            documents.append((0, part.key))
        length, key = documents[-1]
        documents[-1] = length + len(part.content), key
        sides.add(key in rule)
    if len({key for _, key in documents}) < 2:
        return NOTHING
    if len(documents) > 0.5 / fraction and len(sides) == 2:
        return rule
    return HeldOut(only=statistics.median_low(documents)[1])

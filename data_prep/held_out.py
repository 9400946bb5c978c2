"""Which documents are kept from training: a fraction of them, of few documents one."""

import dataclasses
import statistics
from collections.abc import Iterable

from data_prep.sources import DOCUMENT_END


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """A rule that knows a document by its number, from 0."""

    period: int = 0
    """Every period-th document is held out, the first one in the middle of a period; 0: none."""
    only: int | None = None
    """The one document that is, where there are too few for a whole half of a period."""

    def __contains__(self, document: int) -> bool:
        if self.only is not None:
            return document == self.only
        return bool(self.period) and document % self.period == self.period // 2


NOTHING = HeldOut()


def held_out_of(lines: Iterable[str], fraction: float) -> HeldOut:
    """Returns the rule for a text, after a look at its first 1 / (2 * fraction) documents.

    Of fewer documents the one of median length is held out, if there are at least two.

    Args:
        lines: non-empty lines, and `DOCUMENT_END` after each document.
        fraction: f; of enough documents every (1/f)-th. 0 holds out none.
    """
    if not fraction:
        return NOTHING
    rule = HeldOut(period=round(1 / fraction))
    sizes = [0]
    for line in lines:
        if line != DOCUMENT_END:
            sizes[-1] += len(line)
        elif len(sizes) > rule.period // 2:
            return rule
        else:
            sizes.append(0)
    if not sizes[-1]:
        sizes.pop()
    if len(sizes) < 2:
        return NOTHING
    return HeldOut(only=sizes.index(statistics.median_low(sizes)))

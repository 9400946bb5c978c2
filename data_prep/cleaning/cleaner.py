"""Cleans the lines of one unit of work, counting what goes."""

import collections
from collections.abc import Iterable, Iterator

from data_prep.cleaning.benchmark_texts import BenchmarkTexts
from data_prep.cleaning.decisions import UnitDecision
from data_prep.cleaning.line_rules import LineRules
from data_prep.documents import DOCUMENT_END

_BATCH_CHARACTERS = 1 << 18
"""Text in which test texts are looked for at once."""


class Cleaner:
    """Lines of one unit, in and out.

    Args:
        rules: the measures that look at a line alone.
        texts: lines that hold one of these go.
        decision: what else goes.
        continues: whether the unit's first document began in an earlier one.

    Attributes:
        tally: what went, by the names of `manifest.Counts`.
    """

    def __init__(self, rules: LineRules, texts: BenchmarkTexts | None = None,
                 decision: UnitDecision | None = None, continues: bool = False):
        self._rules, self._texts = rules, texts
        self._decision = decision
        self._documents: dict[int, str] = {}
        self._lines: set[int] = set()
        self.tally: collections.Counter[str] = collections.Counter()
        if decision is not None:
            self._lines = set(decision.duplicate_lines.tolist())
            for reason in ("near_duplicate_documents", "other_language_documents"):
                numbers = getattr(decision, reason).tolist()
                self._documents |= dict.fromkeys(numbers, reason)
                self.tally[reason] = len(numbers) - (continues and 0 in numbers)

    def clean(self, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines that stay, and every `DOCUMENT_END`; those of the whole unit go in."""
        if self._rules.are_on or self._decision is not None:
            lines = self._left(lines)
        return iter(lines) if self._texts is None else self._uncontaminated(lines)

    def _left(self, lines: Iterable[str]) -> Iterator[str]:
        document = number = 0
        rules = self._rules
        for raw in lines:
            if raw == DOCUMENT_END:
                document += 1
                yield raw
                continue
            line = rules.normalized(raw)
            reason = rules.reason(line)
            if document in self._documents:
                self._drop("lines_of_dropped_documents", line)
            elif reason:
                self._drop(reason, line)
            elif number in self._lines:
                self._drop("duplicate_lines", line)
            else:
                yield line
            number += 1

    def _uncontaminated(self, lines: Iterable[str]) -> Iterator[str]:
        for batch in _batches(lines):
            for line, found in zip(batch, self._texts.found_in(batch).tolist(), strict=True):
                if found:
                    self._drop("contaminated_lines", line)
                else:
                    yield line

    def _drop(self, reason: str, line: str) -> None:
        self.tally[reason] += 1
        self.tally["dropped_text_bytes"] += len(line.encode(errors="surrogatepass"))


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch

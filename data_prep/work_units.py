"""Cuts the stream of lines into units of work, each of which becomes one shard."""

import dataclasses
from collections.abc import Iterable, Iterator

from data_prep.held_out import NOTHING, HeldOut
from data_prep.sources import DOCUMENT_END


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkUnit:
    """Consecutive text of one split. What is made of it depends on nothing else but settings."""

    split: str
    """"train" or "eval"."""
    index: int
    """Counts the units of the split."""
    lines: tuple[str, ...]
    """With `DOCUMENT_END` after each document that ends here."""
    text_bytes: int
    """UTF-8, without line ends."""
    documents: int
    """Documents that begin here."""

    @property
    def name(self) -> str:
        """Unique within a build, like "train-00000"."""
        return f"{self.split}-{self.index:05d}"


def work_units(
    lines: Iterable[str], unit_bytes: int, held_out: HeldOut = NOTHING
) -> Iterator[WorkUnit]:
    """Groups lines into units, a document that is too long going on in the next unit.

    Args:
        lines: non-empty lines, and `DOCUMENT_END` after each document.
        unit_bytes: a unit has at most so many bytes of text (more if a single line has).
        held_out: the documents that go to the units of split "eval".
    """
    train, kept = _Collector("train", unit_bytes), _Collector("eval", unit_bytes)
    document, begins = 0, True
    for line in lines:
        collector = kept if document in held_out else train
        yield from collector.add(line, begins)
        begins = line == DOCUMENT_END
        document += begins
    yield from train.flush()
    yield from kept.flush()


class _Collector:
    """Gathers the lines of one split."""

    def __init__(self, split: str, unit_bytes: int):
        self._split = split
        self._unit_bytes = unit_bytes
        self._units = 0
        self._clear()

    def add(self, line: str, begins_document: bool) -> Iterator[WorkUnit]:
        size = len(line) if line.isascii() else len(line.encode())
        if self._lines and line != DOCUMENT_END and self._bytes + size > self._unit_bytes:
            yield from self.flush()
        self._lines.append(line)
        self._bytes += size
        self._documents += begins_document

    def flush(self) -> Iterator[WorkUnit]:
        if self._lines:
            yield WorkUnit(split=self._split, index=self._units, lines=tuple(self._lines),
                           text_bytes=self._bytes, documents=self._documents)
            self._units += 1
        self._clear()

    def _clear(self) -> None:
        self._lines: list[str] = []
        self._bytes = self._documents = 0

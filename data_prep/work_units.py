"""Groups documents into units of work, each of which becomes one shard."""

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator

from data_prep.documents import DocumentPart, Parser, lines_of
from data_prep.held_out import NOTHING, HeldOut

Item = typing.TypeVar("Item")
Result = typing.TypeVar("Result")


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkUnit:
    """Documents of one split. What is made of them depends on nothing else but settings."""

    split: str
    """"train" or "eval"."""
    index: int
    """Counts the units of the split."""
    parts: tuple[DocumentPart, ...]
    """Raw, in order; the first document may have begun in an earlier unit, the last may go on."""
    parse: Parser
    """Reads them."""

    @property
    def name(self) -> str:
        """Unique within a build, like "train-00000"."""
        return f"{self.split}-{self.index:05d}"

    @property
    def documents(self) -> int:
        """How many begin here."""
        return sum(part.begins for part in self.parts)

    def lines(self) -> Iterator[str]:
        """Yields the lines of text, and `DOCUMENT_END` after each document that ends here."""
        return lines_of(self.parts, self.parse)


class Runner(typing.Protocol):
    """What units are worked on by: processes of this machine, or a cluster."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yields `function(item)` in the order of `items`.

        Args:
            function: can be pickled; may run in any process.
            items: are consumed as they can be worked on, so that memory stays flat.
        """


def work_units(parts: Iterable[DocumentPart], parse: Parser, unit_bytes: int,
               held_out: HeldOut = NOTHING) -> Iterator[WorkUnit]:
    """Groups parts of documents into units.

    Args:
        parts: the documents, the parts of one after another.
        parse: reads them.
        unit_bytes: a unit has at most so many bytes, more if a single part has.
        held_out: the documents that go to the units of split "eval".
    """
    train, kept = _Collector("train", parse, unit_bytes), _Collector("eval", parse, unit_bytes)
    for part in parts:
        yield from (kept if part.key in held_out else train).add(part)
    yield from train.flush()
    yield from kept.flush()


class _Collector:
    """Gathers the parts of one split."""

    def __init__(self, split: str, parse: Parser, unit_bytes: int):
        self._split, self._parse, self._unit_bytes = split, parse, unit_bytes
        self._units = 0
        self._clear()

    def add(self, part: DocumentPart) -> Iterator[WorkUnit]:
        if self._parts and self._bytes + len(part.content) > self._unit_bytes:
            yield from self.flush()
        self._parts.append(part)
        self._bytes += len(part.content)

    def flush(self) -> Iterator[WorkUnit]:
        if self._parts:
            yield WorkUnit(split=self._split, index=self._units, parts=tuple(self._parts),
                           parse=self._parse)
            self._units += 1
        self._clear()

    def _clear(self) -> None:
        self._parts: list[DocumentPart] = []
        self._bytes = 0

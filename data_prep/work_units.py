"""Cuts a corpus into parts and these into units of work, each of which becomes one shard.

A document's hash decides if it is held out. The division of a corpus among files, units and
machines has no effect on this choice. All copies of a document are in one split.
"""

import collections
import dataclasses
import statistics
import sys
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence

from data_prep.documents import DocumentPart, Parser, SkippingParser
from data_prep.sources.source import Source

Item = typing.TypeVar("Item")
Result = typing.TypeVar("Result")
WordCounts = collections.Counter[bytes]  # Word (UTF-8) -> its count.


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkUnit:
    """Documents of one split, which become one shard."""

    split: str  # "train" or "eval".
    name: str  # Unique: "train-00000", or "train-00003-00000" in the fourth part of the corpus.
    parts: tuple[DocumentPart, ...]
    """Raw, in order; the first and the last document may extend over other units."""
    parse: Parser | SkippingParser

    @property
    def documents(self) -> int:
        """Returns the number of documents that begin in this unit."""
        return sum(part.begins for part in self.parts)


@dataclasses.dataclass(frozen=True)
class CorpusPart:
    """A part of a corpus that is read independently of the others."""

    source: Source
    number: int | None = None  # From 0; None if there is one part.

    def digest(self) -> tuple[int, str]:
        """Returns the part's number and the digest of its text."""
        return self.number or 0, self.source.sha256()

    def units(self, unit_bytes: int, held_out: range = range(0)) -> Iterator[WorkUnit]:
        """Yields the documents in units of at most `unit_bytes`; a longer part is one unit.

        Documents with a key in `held_out` are in units of the split "eval".
        """
        gathered: dict[str, list[DocumentPart]] = {"train": [], "eval": []}
        sizes: collections.Counter[str] = collections.Counter()
        units: collections.Counter[str] = collections.Counter()
        part_of_corpus = "" if self.number is None else f"-{self.number:05d}"

        def finish_unit(split: str) -> WorkUnit:
            unit = WorkUnit(split=split, name=f"{split}{part_of_corpus}-{units[split]:05d}",
                            parse=self.source.parse, parts=tuple(gathered[split]))
            units[split] += 1
            gathered[split], sizes[split] = [], 0
            return unit

        # Parts join the unit of their split, until it would be too long.
        for part in self.source.documents():
            split = "eval" if part.key in held_out else "train"
            if gathered[split] and sizes[split] + len(part.content) > unit_bytes:
                yield finish_unit(split)
            gathered[split].append(part)
            sizes[split] += len(part.content)
        yield from [finish_unit(split) for split in gathered if gathered[split]]


def split_corpus(source: Source) -> tuple[CorpusPart, ...]:
    """Returns the parts of a corpus, numbered if there are several."""
    parts = source.parts()
    if len(parts) == 1:
        return (CorpusPart(parts[0]),)
    return tuple(CorpusPart(part, number) for number, part in enumerate(parts))


class Runner(typing.Protocol):
    """The interface of runners: processes of this machine, or a cluster.

    Functions are pickled, may run in any process, and run again if a process dies. Parts are read
    during the work, so that the memory is bounded. Methods raise the `UserError` of a function or
    of the runner.
    """

    def run(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
            work: Callable[[Item], Result], kind: type[Result]) -> Iterator[Result]:
        """Yields `work(item)` in any order, for all items of `cut(part)` of all parts.

        A result is small, of type `kind`, and can be written as JSON.
        """

    def add_up(self, parts: Iterable[CorpusPart], cut: Callable[[CorpusPart], Iterable[Item]],
               count: Callable[[Item], WordCounts]) -> Iterator[WordCounts]:
        """Yields counts whose sum is the sum of `count(item)` over all items."""


class Progress:
    """A reporter of the parts that this process reads, with a line on stderr every 10 seconds."""

    def __init__(self, source: Source, parts: Sequence[CorpusPart]):
        self._size, self._parts = source.size, parts
        self._start = self._last = time.monotonic()

    def update(self, amounts: dict[str, int]) -> None:
        """Prints a line if one is due: the fraction of the input read, and amounts by name."""
        # The remaining time if the rest is read at the mean rate.
        now = time.monotonic()
        position = sum(part.source.position() for part in self._parts)
        if now - self._last < 10 or not position:
            return
        self._last = now
        seconds = now - self._start
        remaining = seconds * (self._size - position) / position
        rates = ", ".join(f"{number:,} {name} ({number / seconds:,.0f}/s)"
                          for name, number in amounts.items())
        print(f"{100 * position / self._size:3.0f} % read, {rates}, about {remaining:.0f} s left",
              file=sys.stderr, flush=True)


def held_out_keys(parts: Iterable[DocumentPart], fraction: float) -> range:
    """Returns the keys, hashes in [0, 2^64), of a fraction in [0, 0.5] of the documents.

    It reads more than 1 / (2 * fraction) documents, until one is held out and one is not. If the
    documents end before, the range is the key of the one of median length; it is empty if all are
    equal.
    """
    if not fraction:
        return range(0)
    # Read until the keys below the fraction hold out a document, but not all of them.
    keys = range(round(fraction * 2**64))
    documents: list[tuple[int, int]] = []
    sides: set[bool] = set()
    for part in parts:
        if part.damage:
            continue
        if part.begins:
            documents.append((0, part.key))
            sides.add(part.key in keys)
            if len(documents) > 0.5 / fraction and len(sides) == 2:
                return keys
        length, key = documents[-1]
        documents[-1] = length + len(part.content), key
    # A small corpus: hold out the document of median length.
    if len({key for _, key in documents}) < 2:
        return range(0)
    key = statistics.median_low(documents)[1]
    return range(key, key + 1)

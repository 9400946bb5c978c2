"""Defines the interface of a source of text, sequences and mixtures of sources, and options."""
# ruff: noqa: D102 - `Source` describes the methods of all sources.

import abc
import contextlib
import dataclasses
import hashlib
import heapq
from collections.abc import Iterator
from typing import Literal

from data_prep.documents import DocumentPart, Parser, SkippingParser
from electra_tf.core.errors import UserError
from electra_tf.core.settings import Section, setting

CORPUS_PART_BYTES = 256 << 20  # Approximate stored bytes of a part of the corpus.
_ONE_IN = 64  # One in 64 bytes of a mixture is parsed to estimate its text per byte.
_MIN_SAMPLED = 1 << 20  # Bytes of each source of a mixture that are all sampled.


class SourceOptions(Section, prefix="--"):
    """The options of sources; flags have the same names."""

    on_error: Literal["stop", "skip"] = setting("stop", """Handling of a damaged document or file:
        stop the build, or skip it. The manifest of the records lists skipped documents.""")
    wiki_headings: bool = setting(False, """Keep titles and headings of Wikipedia articles as lines
        of text.""")
    tfds_data_dir: str = setting("", """Directory of the data sets of TensorFlow Datasets. Default:
        ~/tensorflow_datasets.""")
    tfds_split: str = setting("train", """Split of a data set to read, as TensorFlow Datasets writes
        it: train+test, train[:10%].""")


class Source(abc.ABC):
    """A text to read. It can be pickled while it is not being read."""

    size: int  # Total bytes to read.
    note: str = ""  # A line for the user after reading `documents`.
    revisions: tuple[str, ...] = ()  # "owner/name@commit" of each data set of the Hub.
    parse: Parser | SkippingParser  # The parser of the documents.

    @abc.abstractmethod
    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents, long ones in parts; damaged stretches are parts with `damage`."""

    @abc.abstractmethod
    def position(self) -> int:
        """Returns the number of bytes read, of `size`, for progress."""

    @abc.abstractmethod
    def sha256(self) -> str:
        """Returns a digest of the documents, and of the options that determine their text."""

    def parts(self) -> "tuple[Source, ...]":
        """Returns sources of about `CORPUS_PART_BYTES` that together have these documents.

        They are in order and have the same `parse`. A source that cannot be cut returns itself.
        """
        return (self,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """One of several sources that are read together."""

    source: Source
    name: str  # The entry of --input.
    number: int  # `DocumentPart.source` of its documents.
    share: float = 0.0  # Fraction of a mixture's text; the shares of all members add up to 1.

    def documents(self) -> Iterator[DocumentPart]:
        """Yields the source's documents, tagged with the member's number."""
        for part in self.source.documents():
            yield dataclasses.replace(part, source=self.number)


@dataclasses.dataclass
class ConcatenatedSource(Source):
    """Sources that are read one after another."""

    members: tuple[Member, ...]
    parse: Parser

    def __post_init__(self):
        self.size = sum(member.source.size for member in self.members)
        self.revisions = tuple(
            revision for member in self.members for revision in member.source.revisions)

    def documents(self) -> Iterator[DocumentPart]:
        for member in self.members:
            yield from member.documents()

    def position(self) -> int:
        return sum(member.source.position() for member in self.members)

    def sha256(self) -> str:
        lines = [f"{member.share} {member.source.sha256()}\n" for member in self.members]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def parts(self) -> tuple[Source, ...]:
        # Each part keeps its member's number.
        return tuple(
            dataclasses.replace(self, members=(dataclasses.replace(member, source=part),))
            for member in self.members for part in member.source.parts())


class Mixture(ConcatenatedSource):
    """Sources whose documents alternate so that each has its share of the text at any time.

    The next document comes from the source with the least text relative to its share; the bytes of
    text are estimated from a parsed sample. The mixture ends when this source has no documents
    left. It cannot be cut into parts.
    """

    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents; then `note` names the source that ended."""
        self.note = ""
        streams = [member.documents() for member in self.members]
        read, sampled, text = ([0] * len(streams) for _ in range(3))  # Bytes by member.
        queue = [(0.0, index) for index in range(len(streams))]
        while True:
            # Take one document of the source with the least text relative to its share.
            _, index = queue[0]
            member, part = self.members[index], None
            for part in streams[index]:
                read[index] += len(part.content)
                if sampled[index] < _MIN_SAMPLED or sampled[index] * _ONE_IN <= read[index]:
                    # The worker that parses the document raises its error again.
                    with contextlib.suppress(UserError):
                        text[index] += sum(len(line.encode()) for line in member.source.parse(part))
                        sampled[index] += len(part.content)
                yield part
                if part.ends:
                    break
            if part is None:
                break
            # Estimate its text from the sample's bytes of text per byte read.
            estimate = read[index] * max(1, text[index]) / max(1, sampled[index])
            heapq.heapreplace(queue, (estimate / member.share, index))
        # Name the source that ended, and how much of the others was read.
        ended = self.members[index]
        others = ", ".join(
            f"{member.name} ({100 * member.source.position() / max(1, member.source.size):.0f} %)"
            for member in self.members if member is not ended)
        self.note = (f"{ended.name} has no more documents, so the mixture ends; read of the other "
                     f"sources: {others}.")

    def parts(self) -> tuple[Source, ...]:
        return (self,)

"""The interface of a source of text, several sources as one, and the options of sources."""

import abc
import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Literal

from data_prep.documents import DocumentPart, Parser, SkippingParser
from electra_tf.platform.settings import Section

PIECE_BYTES = 256 << 20
"""Stored bytes of a piece, about."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceOptions(Section, prefix="--"):
    """The flags that concern sources."""

    on_error: Literal["stop", "skip"] = "stop"
    """Action at a damaged document or file: stop, or skip it. Records' manifests count and list
    skipped documents."""
    wiki_headings: bool = False
    """Keep titles and headings of Wikipedia articles, one per line."""
    tfds_data_dir: str = ""
    """Directory of TensorFlow Datasets. Default: its own."""
    tfds_split: str = "train"
    """Split of a data set, in the notation of TensorFlow Datasets: train+test, train[:10%]."""


class Source(abc.ABC):
    """Text that can be read. It can be pickled, unless it is being read."""

    size: int
    """Bytes to read in all."""
    parse: Parser | SkippingParser
    """Reads text out of the documents."""

    @abc.abstractmethod
    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents, long ones in parts; damaged stretches are parts with `damage`."""

    @abc.abstractmethod
    def position(self) -> int:
        """Returns how many of `size` bytes have been read, for progress."""

    @abc.abstractmethod
    def sha256(self) -> str:
        """Returns a digest of everything that `documents` will yield, and of how it is read."""

    def revisions(self) -> tuple[str, ...]:
        """Returns "owner/name@commit" of each data set of the Hugging Face Hub that is read."""
        return ()

    def pieces(self) -> "tuple[Source, ...]":
        """Returns sources of about `PIECE_BYTES` that have, in order, these documents.

        `parse` reads them all. A source that cannot be cut returns itself.
        """
        return (self,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """One of several sources."""

    source: Source
    name: str
    """The entry of --input."""
    number: int
    """`DocumentPart.source` of its documents."""


@dataclasses.dataclass
class Sequence(Source):
    """Sources that are read one after another."""

    members: tuple[Member, ...]
    parse: Parser

    def __post_init__(self):
        self.size = sum(member.source.size for member in self.members)

    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents of all members, tagged with the member's number."""
        for member in self.members:
            for part in member.source.documents():
                yield dataclasses.replace(part, source=member.number)

    def position(self) -> int:
        """Returns the sum of the members' positions."""
        return sum(member.source.position() for member in self.members)

    def sha256(self) -> str:
        """Returns a digest of the members' digests."""
        lines = [f"0.0 {member.source.sha256()}\n" for member in self.members]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def revisions(self) -> tuple[str, ...]:
        """Returns the revisions of all members."""
        return tuple(one for member in self.members for one in member.source.revisions())

    def pieces(self) -> tuple["Sequence", ...]:
        """Returns the pieces of all members; each keeps its member's number."""
        return tuple(
            dataclasses.replace(self, members=(dataclasses.replace(member, source=piece),))
            for member in self.members for piece in member.source.pieces())

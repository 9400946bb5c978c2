"""What a source of text is, and the options that its user has."""

import abc
import dataclasses
from collections.abc import Iterator

from data_prep.documents import DocumentPart, Parser

PIECE_BYTES = 256 << 20
"""Stored bytes of a piece, about."""


class Source(abc.ABC):
    """Where text comes from. It can be pickled, unless it is being read."""

    size: int
    """Bytes to read in all."""
    parse: Parser
    """Reads text out of the documents."""

    @abc.abstractmethod
    def documents(self) -> Iterator[DocumentPart]:
        """Yields the documents, those that are too long in parts, from the first one on.

        What can't be read is a part with `damage`.
        """

    @abc.abstractmethod
    def position(self) -> int:
        """Returns how many of `size` bytes have been read, for progress."""

    @abc.abstractmethod
    def sha256(self) -> str:
        """Returns a digest of everything that `documents` will yield, and of how it is read."""

    def pieces(self) -> "tuple[Source, ...]":
        """Returns sources that can be read apart: in order they have the documents of this one.

        They are cut between files, about `PIECE_BYTES` each, and `parse` reads them all. This is
        for one that can't be cut.
        """
        return (self,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What flags say about sources; each concerns some of them."""

    headings: bool = False
    """Whether titles and headings of Wikipedia's articles are lines of the text."""
    tfds_data_dir: str = ""
    """Where TensorFlow Datasets keeps its data sets; "": where it does by itself."""
    tfds_split: str = "train"
    """In TensorFlow Datasets' words, such as "train+test" or "train[:10%]"."""
    skip_damaged: bool = False
    """Leave out damaged documents instead of stopping at the first."""

"""What a source of text is, and the options that its user has."""

import abc
import dataclasses
from collections.abc import Iterator

from data_prep.documents import DocumentPart, Parser

PIECE_BYTES = 256 << 20
"""Stored bytes of a piece, about."""


class Source(abc.ABC):
    """Text that can be read. It can be pickled, unless it is being read."""

    size: int
    """Bytes to read in all."""
    parse: Parser
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
class Options:
    """The flags that concern sources."""

    headings: bool = False
    """Whether titles and headings of Wikipedia's articles are lines of the text."""
    tfds_data_dir: str = ""
    """Where TensorFlow Datasets keeps its data sets; "": where it does by itself."""
    tfds_split: str = "train"
    """In TensorFlow Datasets' words, such as "train+test" or "train[:10%]"."""
    skip_damaged: bool = False
    """Leave out damaged documents instead of stopping at the first."""

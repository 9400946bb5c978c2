"""Several sources as one: one after another, or mixed in given shares."""

import dataclasses
import hashlib
import heapq
from collections.abc import Iterator

from data_prep.documents import DocumentPart, Parser
from data_prep.sources.source import Source
from electra_tf.platform.errors import UserError

_SAMPLED = 64
"""Of a mixture, a 64th of the bytes is parsed to know how much text there is in a byte."""
_LEAST_SAMPLED = 1 << 20
"""Bytes of each source that are parsed in any case."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """One of several sources."""

    source: Source
    name: str
    """As --input has it."""
    number: int
    """`DocumentPart.source` of its documents."""
    share: float = 0.0
    """Fraction of a mixture's text bytes; the shares of all members add up to 1."""

    def tagged(self) -> Iterator[DocumentPart]:
        """Yields its documents, saying that they are its."""
        for part in self.source.documents():
            yield dataclasses.replace(part, source=self.number)


@dataclasses.dataclass
class _Several(Source):
    """Sources that are read together."""

    members: tuple[Member, ...]
    parse: Parser

    def __post_init__(self):
        self.size = sum(member.source.size for member in self.members)

    def position(self) -> int:
        """See `Source`."""
        return sum(member.source.position() for member in self.members)

    def sha256(self) -> str:
        """See `Source`."""
        digest = hashlib.sha256()
        for member in self.members:
            digest.update(f"{member.share} {member.source.sha256()}\n".encode())
        return digest.hexdigest()

    def revisions(self) -> tuple[str, ...]:
        """See `Source`."""
        return tuple(one for member in self.members for one in member.source.revisions())


class Sequence(_Several):
    """Sources that are read one after another."""

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
        for member in self.members:
            yield from member.tagged()

    def pieces(self) -> tuple["Sequence", ...]:
        """See `Source`."""
        return tuple(
            dataclasses.replace(self, members=(dataclasses.replace(member, source=piece),))
            for member in self.members for piece in member.source.pieces())


class Mixture(_Several):
    """Sources whose documents alternate so that each has its share of the text at any time.

    The next document comes from the source that is furthest behind its share. Text bytes are
    estimated from the documents' bytes and from a 64th of them, parsed. The same sources and shares
    always give the same order. The mixture ends where the source that is next has no more
    documents.
    """

    note = ""
    """Reason why it ended, after `documents` has been read to its end."""

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
        self.note = ""
        streams = [_Stream(member) for member in self.members]
        behind = [(0.0, index) for index in range(len(streams))]
        while True:
            _, index = behind[0]
            last = None
            for last in streams[index].document():
                yield last
            if last is None:
                break
            heapq.heapreplace(behind, (streams[index].progress, index))
        self.note = self._end_of(self.members[index])

    def _end_of(self, ended: Member) -> str:
        left = ", ".join(
            f"{member.name} ({100 * member.source.position() / max(1, member.source.size):.0f} %)"
            for member in self.members if member is not ended)
        return (f"{ended.name} has no more documents, and the mixture ends with it; read of the "
                f"others: {left}.")


class _Stream:
    """The documents of a member, and the progress in them."""

    def __init__(self, member: Member):
        self._parts = member.tagged()
        self._parse, self._share = member.source.parse, member.share
        self._bytes = self._sampled = self._text = 0

    def document(self) -> Iterator[DocumentPart]:
        """Yields the parts of the next document; nothing if there is none."""
        for part in self._parts:
            self._bytes += len(part.content)
            if self._sampled < _LEAST_SAMPLED or self._sampled * _SAMPLED <= self._bytes:
                self._sample(part)
            yield part
            if part.ends:
                return

    def _sample(self, part: DocumentPart) -> None:
        try:
            self._text += sum(len(line.encode()) for line in self._parse(part))
        except UserError:  # Whoever reads the document says so.
            return
        self._sampled += len(part.content)

    @property
    def progress(self) -> float:
        """Returns the estimated bytes of text so far, divided by the share."""
        return self._bytes * max(1, self._text) / max(1, self._sampled) / self._share


def members_of(source: Source) -> tuple[Member, ...]:
    """Returns the sources that a source is put together of; none if it is a single one."""
    return source.members if isinstance(source, _Several) else ()


def note_of(source: Source) -> str:
    """Returns what the user should know about a source that has been read; "" if nothing."""
    return source.note if isinstance(source, Mixture) else ""

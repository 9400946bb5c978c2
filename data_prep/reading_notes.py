"""What a reader of documents notes besides their text: what it left out, and how much of which."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from electra_tf.platform import strict_json
from electra_tf.platform.errors import one_line

MOST_LISTED = 20
"""Skipped documents whose messages are kept; the others are counted."""

_SHOWN = 10
"""Of them, those that are printed."""


@dataclasses.dataclass
class ReadingNotes:
    """Notes of one unit of work, or of several together (`+`)."""

    __pydantic_config__ = strict_json.STRICT

    skipped: int = 0
    """Damaged documents that were left out; of one in parts, the damaged parts."""
    messages: list[str] = dataclasses.field(default_factory=list)
    """What is wrong with the first `MOST_LISTED` of them."""
    documents: dict[str, int] = dataclasses.field(default_factory=dict)
    """Number of a source -> its documents that began."""
    text_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    """Number of a source -> bytes of its text, UTF-8, without line ends."""

    def skip(self, message: str) -> None:
        """Notes a damaged document."""
        self.skipped += 1
        self.messages = [*self.messages, message][:MOST_LISTED]

    def counted(self, part: Any, lines: Iterable[str]) -> Iterator[str]:
        """Yields the lines of a `DocumentPart`, counting them for its source."""
        source, size = str(part.source), 0
        for line in lines:
            size += len(line) if line.isascii() else len(line.encode())
            yield line
        self.documents[source] = self.documents.get(source, 0) + part.begins
        self.text_bytes[source] = self.text_bytes.get(source, 0) + size

    def summary(self) -> str:
        """Returns what was skipped, in a line, and in one more for each of the first ones."""
        shown = [f"  {one_line(message)}" for message in self.messages[:_SHOWN]]
        others = self.skipped - len(shown)
        return "\n".join([f"{self.skipped:,} damaged document{'s' * (self.skipped != 1)} skipped "
                          "(--on_error=skip):", *shown, *[f"  and {others:,} more"] * bool(others)])

    def __add__(self, other: "ReadingNotes") -> "ReadingNotes":
        return ReadingNotes(
            self.skipped + other.skipped, [*self.messages, *other.messages][:MOST_LISTED],
            _sum(self.documents, other.documents), _sum(self.text_bytes, other.text_bytes))


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(collections.Counter(one) + collections.Counter(other))

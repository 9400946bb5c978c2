"""English that every Python carries: its language reference and its modules' docstrings."""

import dataclasses
import hashlib
from collections.abc import Iterator

from data_prep import embedded_text
from data_prep.documents import DocumentPart, Parser, key_of, parse_plain_text

EMBEDDED = "embedded:python"


@dataclasses.dataclass
class EmbeddedText:
    """The text that Python carries, as `embedded_text` finds it."""

    parse: Parser = parse_plain_text

    def __post_init__(self):
        self._texts = ["\n".join(lines).encode() for lines in embedded_text.documents()]
        self.size = sum(map(len, self._texts))
        self._read = 0

    def documents(self) -> Iterator[DocumentPart]:
        """See `Source`."""
        self._read = 0
        for text in self._texts:
            self._read += len(text)
            yield DocumentPart(content=text, key=key_of(text), path=EMBEDDED)

    def position(self) -> int:
        """See `Source`."""
        return self._read

    def sha256(self) -> str:
        """See `Source`."""
        return hashlib.sha256(b"\n\n".join(self._texts)).hexdigest()

    def pieces(self) -> tuple["EmbeddedText", ...]:
        """See `Source`."""
        return (self,)

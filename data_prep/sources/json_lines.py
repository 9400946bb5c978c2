"""JSON lines: an object a line, its text under one name."""

import dataclasses
import json
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, decoded, key_of, stripped
from data_prep.sources.files import FileSource, StreamFormat, damaged_stretch, matching_files
from electra_tf.platform.errors import UserError, shown

TEXT_FIELD = "text"
LONGEST_LINE = 64 << 20
"""Bytes of a line."""


def json_lines(pattern: str, field: str) -> FileSource:
    """Returns the source of the strings under `field` in the objects of files."""
    return FileSource(matching_files(pattern), StreamFormat(f"jsonl#{field}", split_lines),
                      JsonParser(field))


def split_lines(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the lines of a file that aren't blank, whole."""
    offset = 0
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            size = len(line) + _rest_of_line(file)
            yield damaged_stretch(path, f"{path}: the line at byte {offset} has {size} bytes, more "
                                  f"than the {LONGEST_LINE} that one may have")
            offset += size
            continue
        if line.strip(b" \t\r\n\xef\xbb\xbf"):
            yield DocumentPart(content=line, key=key_of(line), path=path, offset=offset)
        offset += len(line)


def _rest_of_line(file: typing.BinaryIO) -> int:
    size = 0
    while part := file.readline(LONGEST_LINE):
        size += len(part)
        if part.endswith(b"\n"):
            break
    return size


@dataclasses.dataclass(frozen=True)
class JsonParser:
    """Reads the lines of text of an object."""

    field: str

    def __call__(self, part: DocumentPart) -> Iterator[str]:
        """See `Parser`."""
        place = f"{part.path}: the line at byte {part.offset}"
        text = decoded(part, "convert the file, for example with `iconv -f latin1 -t utf-8`")
        try:
            found = json.loads(text.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            at = part.offset + len(text[:error.pos].encode())
            raise UserError(f"{place} is no JSON: {error.msg} at byte {at}; mend or remove it."
                            ) from error
        except (RecursionError, ValueError) as error:  # A number of more digits than Python reads.
            raise UserError(f"{place} is nested too deeply, or has a number with too many digits; "
                            "mend or remove it.") from error
        if not isinstance(found, dict):
            raise UserError(f"{place} is no JSON object; it holds {shown(found)}.")
        if self.field not in found:
            raise UserError(f"{place} has no field {shown(self.field)}; it has "
                            f"{shown(sorted(found))}. Name the field that holds the text behind "
                            "the pattern: #FIELD.")
        value = found[self.field]
        if not isinstance(value, str):
            raise UserError(f"{place}: the field {shown(self.field)} must be a string. Received: "
                            f"{shown(value)}")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UserError(f"{place}: the field {shown(self.field)} has half of a character "
                            f"({shown(value[error.start])}); mend or remove it.") from error
        return stripped(value)

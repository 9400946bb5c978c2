"""Reads JSON lines: each line is an object with a document in one field."""

import functools
import json
import typing
from collections.abc import Iterator

from data_prep.documents import DocumentPart, decoded, key_of, stripped
from data_prep.sources.files import FileSource, damaged_stretch, matching_files
from electra_tf.platform.errors import UserError, shown

LONGEST_LINE = 64 << 20
"""Bytes of the longest line that is read."""


def json_lines(pattern: str, field: str) -> FileSource:
    """Returns the source of the strings in `field` of the objects in files."""
    return FileSource(matching_files(pattern), f"jsonl#{field}",
                      split_lines, functools.partial(parse_object, field))


def split_lines(file: typing.BinaryIO, path: str) -> Iterator[DocumentPart]:
    """Yields the whole lines of a file, without blank ones."""
    offset = 0
    while line := file.readline(LONGEST_LINE):
        start, offset = offset, offset + len(line)
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                offset += len(rest)
            offset += len(rest)
            yield damaged_stretch(path, f"{path}: the line at byte {start} has {offset - start} "
                                  f"bytes, more than the {LONGEST_LINE} that one may have")
        elif line.strip(b" \t\r\n\xef\xbb\xbf"):
            yield DocumentPart(content=line, key=key_of(line), path=path, offset=start)


def parse_object(field: str, part: DocumentPart) -> Iterator[str]:
    """Returns the lines of an object's text; `UserError` without a string in the field."""
    place = f"{part.path}: the line at byte {part.offset}"
    text = decoded(part)
    try:
        record = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        at = part.offset + len(text[:error.pos].encode())
        raise UserError(f"{place} is no JSON: {error.msg} at byte {at}; mend or remove it."
                        ) from error
    except (RecursionError, ValueError) as error:  # Too many digits for Python.
        raise UserError(f"{place} is nested too deeply, or has a number with too many digits; "
                        "mend or remove it.") from error
    if not isinstance(record, dict):
        raise UserError(f"{place} is no JSON object; it holds {shown(record)}.")
    if field not in record:
        raise UserError(f"{place} has no field {shown(field)}; it has {shown(sorted(record))}. "
                        "Name the field that holds the text after the pattern: #FIELD.")
    value = record[field]
    if not isinstance(value, str):
        raise UserError(f"{place}: the field {shown(field)} must be a string. Received: "
                        f"{shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{place}: the field {shown(field)} has half of a character "
                        f"({shown(value[error.start])}); mend or remove it.") from error
    return stripped(value)
